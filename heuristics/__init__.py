"""Published schedules, one family per file: each turns a problem into the order drawn in its paper.

- `catalogue.py` is the registry, to which each file adds its schedules; a new one is a file more.
- A schedule that cannot be for a problem raises `DoesNotApply`; `solver/published.py` makes the reason of it.
- `building/` has the parts of orders that several families share.
"""
