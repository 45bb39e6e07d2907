"""Schedules from one sequence of steps, the forwards and backwards of a chain's stages on all devices."""
