"""Relaxations: simpler problems whose lower bounds are also lower bounds of the problem.

- `relaxations.py` lists all, in the order in which they are applied; `relaxation.py` is their type. The others are one
  relaxation each, but `parameter_times.py` (what an iteration takes before and after its micro-batches) and
  `ample_memory.py` (if memory matters at all).
- The check of bounds has its own in `pipesched/checking/relaxed/`.
"""
