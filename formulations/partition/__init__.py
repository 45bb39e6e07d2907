"""Partitions as a CP-SAT model: the layers of each stage, the recomputed ones, and lower bounds on the objective."""
