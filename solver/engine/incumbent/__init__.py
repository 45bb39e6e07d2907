"""The state of a search: its start, the best schedule and bound, and both in common ticks."""
