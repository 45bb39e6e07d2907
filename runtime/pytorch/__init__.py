"""Runs and profiles schedules with PyTorch, which is an extra: no other package imports torch."""
