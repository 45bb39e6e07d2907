"""Search for one period, its warm-up and cool-down, and schedules made by repeating it.

- `solve_period.py` is one solve for the objective period: its bounds, checked, then published schedules and the search.
- `period_bounds.py` lists the lower bounds (`_BOUNDS`), `mode_bound.py` is the one over all modes.
- `period_search.py` asks CP-SAT for a shorter period (model in `formulations/cyclic/`); `problem_period.py` unrolls it.
- `pattern_extraction.py` reads patterns from the middle of long schedules, from which the search starts.
- Other objectives use `replication.py`, which repeats the periodic part of a short schedule, and
  `extended_candidate.py`, which gives the figures of a long one without its timeline.
"""
