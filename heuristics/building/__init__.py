"""Building blocks of published schedules: requirements on a problem, common orders, serial schedule generation."""
