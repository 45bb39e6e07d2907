"""Time that a device must idle: in warm-up and cool-down, and where memory is full."""
