"""The simulator: start times for an order, exact or under random durations."""
