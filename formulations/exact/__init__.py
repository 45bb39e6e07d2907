"""Exact CP-SAT model of a whole iteration, and its objectives.

- `exact_model.py` posts the constraints of `formulations/constraints/`, hints at a known schedule, and reads
  solutions; when it is solved is decided in `solver/engine/subsolvers/exact_model.py`.
- `valid_inequalities.py` and `work_by_mode.py` have redundant constraints that raise CP-SAT's bound.
"""
