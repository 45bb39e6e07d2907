"""Subsolvers of the engine: each a frozen dataclass whose fields are its parameters.

`solver/engine/engine.py` lists them in the order of their first slices; `bounds/` has those that raise the lower bound
alone, `tasks/` those for passes of several tasks. `core_guided.py` may run on a worker of its own.
"""
