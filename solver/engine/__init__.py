"""The engine of one solve: subsolvers that share the time limit, one incumbent and one lower bound.

- `engine.py` lists what a solve runs, in order; `run.py` runs it, `search.py` is the state that all share.
- `analytic_bounds.py` is first, then `construction/` (first schedules), then slices of `subsolvers/`.
- `allocation.py` decides which subsolver is next and how long its slice is; `clock.py` counts time or work.
- Shared by subsolvers: `claims.py` publishes bounds, `improving_model.py` is CP-SAT's model, `destructive_slice.py`
  refutes values by it, `diagram_bounds.py` is the base of those by diagrams;
  `relaxed.py` searches the problem of plain passes, `background_search.py` and `dedicated_worker.py` on other cores.
- `incumbent/incumbent.py` keeps the best schedule and bound: an equal value does not replace an earlier one, and
  whatever is offered or claimed is validated or checked there. `finish.py` has what is left to do at the end.
"""
