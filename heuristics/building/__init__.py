"""Building blocks of published schedules: requirements on a problem, orders that several share, and list scheduling."""
