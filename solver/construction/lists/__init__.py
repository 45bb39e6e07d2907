"""The list scheduler: one run over arrays, compiled, or interpreted if it is not compiled yet.

- `tables.py` makes the arrays (columns in `layout.py`) and reads the schedule; `kernel.py` is the run, `choice.py` the
  next pass, `memory.py` if it may start, `compiled.py` the decorators.
"""
