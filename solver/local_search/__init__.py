"""Local search: simulated annealing over the orders and modes of passes.

- `portfolio.py` runs it on all workers in rounds, from schedules of `pool.py`; `annealing.py` is one run.
- `annealing_kernel.py` is the compiled loop: `moves.py` and `mode_moves.py` propose, `propagation.py` computes times,
  and `memory_levels.py` tests memory. `units/` makes the arrays of a schedule;
  `arrays.py` names their types.
- `equal_value.py` seeks less memory or more slack at the same value; `exchange.py` swaps unequal micro-batches.
"""
