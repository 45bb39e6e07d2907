"""Checks of bounds by memory: over time, with copies, recomputation and modes, and of schedules with more of it."""
