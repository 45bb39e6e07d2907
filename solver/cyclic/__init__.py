"""Search for one period, its warm-up and cool-down, and schedules made by repeating it."""
