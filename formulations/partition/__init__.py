"""Partitions as a CP-SAT model: how many layers each stage has, what is recomputed, and what that bounds."""
