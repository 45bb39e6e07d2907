"""Construction of schedules: list scheduling, orders with few gathers, and times for a given order."""
