"""Decision diagrams over activation modes: kept, offloaded to the host and loaded again, or recomputed."""
