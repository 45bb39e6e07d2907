"""Checks of bounds for passes made of tasks on several streams.

- `load.py`, `tasks.py` (heads and tails), `memory.py`, `memory_over_time.py` and `weights.py` have an argument each.
- `task_paths.py` has the tasks of one micro-batch; `tasks_as_stages.py` makes them stages for the other arguments.
"""
