"""Sweeps: a problem or plan file with lists of values for fields, the cells, their outcomes, and the store."""
