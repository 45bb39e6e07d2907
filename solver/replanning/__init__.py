"""Replanning of the remaining tasks of an iteration in progress, as after a delay.

- `replan.py` is the call and the search, `first_orders.py` its first answers, `gathers_on_demand.py` gathers in them.
"""
