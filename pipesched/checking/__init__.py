"""The check of lower bounds: repeats their arguments from the evidence in certificates, without code of the solver.

- `check.py` lists the argument of each kind of certificate and compares what it proves with what is stated;
  `relaxed/posed.py` makes the relaxed problem that the argument is about, `coverage.py` refuses what it does not cover.
- `devices/`, `memory/`, `streams/` and `diagram/` have the arguments, `period.py` those of periods.
- `attainable.py` rounds a value up to one that a schedule can have.
- `plan_check.py` and `partitions/` check bounds over all plans; `finding.py` has the verdicts.
"""
