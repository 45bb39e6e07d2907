"""Schedules from orders of the steps of a chain: the forwards and gradients of all devices in one sequence."""
