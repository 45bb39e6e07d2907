"""Reports on plans, and on the layers that they are made of.

- By command: `plan.py`, `layouts.py`, `layers.py`, `plan_comparison.py` (`compare`). `plan_tables.py` has the tables,
  `plan_files.py` the output files.
"""
