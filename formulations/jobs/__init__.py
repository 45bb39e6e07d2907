"""Tasks of all micro-batches as jobs: precedences, choices, memory, and schedules of them with times."""
