"""Checks of bounds from the work of one device: its load, idle time, warm-up and cool-down."""
