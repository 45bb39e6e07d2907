"""Command-line options shared by several commands, and their interpretation.

- `search.py` has limits, progress and Ctrl-C of searches; `values.py` the types of values and their errors.
- `noise.py` is `--noise` of `simulate` and `compare`; that of `solve` is in `commands/reports/solved/robustness.py`.
"""
