"""Problems that are another one with a chain of stages for each path: micro-batches, pieces, replicas, modules."""
