"""Checks of bounds from the work of one device: its load, idle time, warm-up and cool-down.

- `device_arguments.py` has load, round trip and in-flight limit; `head_and_tail.py`, `cool_down.py`, `unpaired.py` and
  `warm_up.py` have an argument each.
- `one_device.py`, `least_times.py` and `memory_over_time.py` have the quantities that they use.
"""
