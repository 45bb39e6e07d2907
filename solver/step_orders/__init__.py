"""Schedules from one sequence of steps, the forwards and backwards of a chain's stages on all devices.

- `search.py` is the beam search; compiled: `labels.py`, one layer of it, and `weights.py`, one step; `schedules.py`
  makes a schedule of the steps.
"""
