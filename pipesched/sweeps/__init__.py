"""Sweeps: a problem or plan file with lists of values for fields, the cells, their outcomes, and the store.

- `axes.py` and `values.py` are the fields and their values, `field_paths.py` their paths, `cells.py` the problems, each
  with the key by which the store finds its result; `same_model.py` keeps the layers where stages change.
- `outcome.py` is a result (`packed.py`: its schedule, `plan_evidence.py`: evidence of plans); `store.py` writes the
  file, `stored.py` reads it for a check; `table.py` and `exports.py` show it.
"""
