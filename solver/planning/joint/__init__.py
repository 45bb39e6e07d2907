"""Partition and order changed together: simulated annealing over both, every step simulated."""
