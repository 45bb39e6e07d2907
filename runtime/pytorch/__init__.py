"""Execution and profiling of schedules with PyTorch, an optional dependency that no other package imports."""
