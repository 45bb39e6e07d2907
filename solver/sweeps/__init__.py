"""Sweeps: many problems (cells) solved in parallel, each with the known results of its neighbours in memory.

- `sweep.py` is the call in Python, `run_sweep.py` the run, `solve_cell.py` one cell, `outcomes.py` its result.
- `executor.py` solves in sequence, `process_pool.py` on processes, `cluster.py` on a Dask cluster.
- `neighbours.py` and `plan_start.py` use what is known of other cells.
"""
