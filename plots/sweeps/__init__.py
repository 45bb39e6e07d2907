"""Pictures of a sweep: what memory buys, what micro-batches and transfers cost, how good published schedules are."""
