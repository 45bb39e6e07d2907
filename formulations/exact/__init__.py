"""Exact CP-SAT model of a whole iteration, and its objectives."""
