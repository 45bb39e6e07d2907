"""Idle time that no schedule avoids: in warm-up and cool-down, and where memory is full."""
