"""Searches for plans: over placements, over the partitions of one placement, and over orders of passes.

- `placements.py` has the best plan and bound of all; `choice_search.py` is one placement.
- `first_plans.py` has the first plans, `free_orders.py` and `published_orders.py` go on with others.
"""
