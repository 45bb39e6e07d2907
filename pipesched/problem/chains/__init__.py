"""Construction of problems with several chains of stages: for unequal micro-batches, pieces, replicas, and modules."""
