"""Checks of bounds from memory: memory over time, copies, recomputation, modes, and problems with more memory.

- `memory_and_copies.py` is about offloaded and recomputed activations, `memory_and_modes.py` about split backwards and
  blocks, `more_memory.py` about capacities larger than the problem's.
"""
