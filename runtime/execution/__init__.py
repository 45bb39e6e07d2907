"""Shared parts of executors: the program of a rank, its streams and transfers, and saved tensors that move."""
