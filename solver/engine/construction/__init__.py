"""Construction heuristics, which run in order before the subsolvers share the time.

- `published.py` tries the schedules of papers, `published_extended.py` those of very long problems.
- `sequential.py` runs one micro-batch after the other, `first_schedule.py` whatever fits; `microbatch_orders.py` is for
  unequal micro-batches, `task_schedules.py` for passes of several tasks.
"""
