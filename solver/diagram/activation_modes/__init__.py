"""Diagrams of how activations are held: kept, copied to the host and back, or recomputed."""
