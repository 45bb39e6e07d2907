"""Subsolvers for passes of several tasks, and for activations that may be offloaded or recomputed."""
