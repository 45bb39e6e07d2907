"""Pictures of a sweep: what a gigabyte buys, what micro-batches and transfers cost, how good published schedules are."""
