"""The simulator: start times for an order, exact and under random durations."""
