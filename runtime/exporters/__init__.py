"""Exporters of schedules to files for the programs that run or show them, one module for each format.

- `catalogue.py` is the registry, to which each format adds itself; `restrictions.py` has what `--for` restricts.
- Where sends and receives are placed is decided in `runtime/lowering/programs.py`.
"""
