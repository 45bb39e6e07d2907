"""Pictures of a sweep.

They show time against memory, idle time against micro-batches or transfers, and ratios of published schedules.
"""
