"""Lowering of schedules to send and receive operations, with a proof of freedom from deadlock.

- `programs.py` places sends and receives among the computes of each device, `stream_programs.py` those of each stream.
- `deadlock.py` proves that a program ends, `matching.py` that both ends of a transfer agree.
"""
