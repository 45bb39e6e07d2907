"""Schedules out to other programs and back in, and run with PyTorch."""
