"""The engine of one solve: subsolvers that share the time limit, one incumbent and one lower bound.

- `engine.py` lists what a solve runs, in order; `run.py` runs it, `search.py` is the state that all share.
- `analytic_bounds.py` is first, then `construction/` (first schedules), then slices of `subsolvers/`.
- `allocation.py` decides which subsolver is next and how long its slice is; `clock.py` counts time or work.
- `incumbent/incumbent.py` keeps the best schedule and bound: an equal value does not replace an earlier one, and
  whatever is offered or claimed is validated or checked there. `finish.py` has what is left to do at the end.
"""
