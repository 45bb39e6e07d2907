"""Optima of tiny problems by a model of their own, made from the file's document alone.

It knows no reader, network, simulator or formulation of pipesched's: what it says of a problem is what the pages of the
documentation say, written once more.

- `reading.py` makes cells (`cells.py`) of a document: `walks.py`, `modules.py`, `frozen.py`, `once.py`, `values.py`.
- `model.py` is the CP-SAT model: `tasks.py` has its variables, `memory_rows.py` and `parameter_rows.py` rows.
"""
