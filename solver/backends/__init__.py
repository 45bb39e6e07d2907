"""CP-SAT backend: every call of OR-Tools' solver, with limits and interruption; models are in `formulations/`.

- `cp_sat.py` makes the call: parameters, limits, callbacks; `interruptible.py` ends it at a stop event.
- `exact_search.py` asks for better schedules and bounds, `destructive_bound.py` refutes values, and
  `recheck_refutation.py` proves such a bound once more.
- `paced.py` suspends work between slices, CP-SAT's or a diagram's.
"""
