"""Shared parts of our executors: the program of a rank, its streams and transfers, and offload of saved tensors."""
