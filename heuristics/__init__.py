"""Published schedules, one family per file: each turns a problem into the order drawn in its paper.

- `catalogue.py` is the registry, to which each file adds its schedules; a new one is one more file.
- A schedule that is not defined for a problem raises `DoesNotApply`; `solver/published.py` shows the reason.
- `building/` has the parts of orders that several families share.
"""
