"""Partitions of the layers for one placement: lower bounds over all of them, balanced ones, and memory fit.

- `balance.py` is the first partition of a search; `starting.py` has those of narrower problems.
- `master.py` and `by_device.py` have the bounds over all partitions.
"""
