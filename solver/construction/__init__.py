"""Construction of schedules: list scheduling, orders with few gathers, and times for a given order.

- `list_scheduling.py` is the list scheduler for any problem, with the preferences of `policy.py`; `lists/` is the
  compiled one, whose rules `rule_search.py` and `tuned_lists.py` search for.
- `timing.py` gives an order its best times, for any objective.
- `grouped.py` makes orders that gather rarely, `mirrored.py` those of two chains in opposite directions.
"""
