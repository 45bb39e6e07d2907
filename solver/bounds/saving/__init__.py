"""Lower bounds of problems whose activations may be offloaded or recomputed."""
