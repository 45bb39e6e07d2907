"""Tabu search of critical blocks over the orders of jobs on streams, for problems without memory constraints."""
