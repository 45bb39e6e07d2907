"""CP-SAT model of partitions: layers of each stage, recomputed ones, and lower bounds on the objective as rows.

- `partition_model.py` has the variables, `stage_terms.py` times and memory of a stage, `recompute_rows.py` the rule of
  recomputation, `extra_loads.py` what no partition changes.
- `bound_rows.py` has the lower bounds, with `chain_paths.py`, `memory_rows.py` and `period_rows.py`; `fixed_order.py`
  those of one order. `least_memory.py` and `most_free.py` ask for memory in place of time.
"""
