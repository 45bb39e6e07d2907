"""Tabu search of critical blocks: over the orders of jobs on streams, where memory limits nothing."""
