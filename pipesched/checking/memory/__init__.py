"""Checks of bounds from memory: memory over time, copies, recomputation, modes, and problems with more memory."""
