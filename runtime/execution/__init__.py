"""Shared parts of our executors: the program of a rank, its streams and transfers, and offload of saved tensors.

- `program.py` reads the program, `streams.py` has streams and events, `transfers.py` sends and receives, `saved.py`
  tensors copied to the host.
"""
