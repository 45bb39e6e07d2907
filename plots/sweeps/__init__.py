"""Pictures of a sweep: time against memory, idle time against micro-batches or transfers, ratios of published
schedules."""
