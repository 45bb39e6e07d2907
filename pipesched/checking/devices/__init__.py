"""Checks of bounds by the work of one device: its load, its warm-up and cool-down, its period."""
