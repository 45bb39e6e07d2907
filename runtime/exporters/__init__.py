"""Exporters of schedules to files for the programs that run or show them, one module for each format.

- `catalogue.py` is the registry, to which each format adds itself; `restrictions.py` has what `--for` restricts.
- A runtime has a file of its name; where it writes a module of Python, this is assembled in the file that ends in
  `_module`. Shared: `order_limits.py` (refusals), `torch_csv_cells.py`, and for our own executors `rank_program.py`
  and `rank_rows.py`.
- Where sends and receives are placed is decided in `runtime/lowering/programs.py`.
"""
