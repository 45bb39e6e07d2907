"""First schedules: published ones, list scheduling, times for a given order."""
