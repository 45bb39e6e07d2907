"""Measurement of a PyTorch model stage by stage: time, memory, transfers."""
