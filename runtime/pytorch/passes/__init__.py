"""Passes of a PyTorch stage: values sent on, activations kept or offloaded, split backwards, sums over replicas."""
