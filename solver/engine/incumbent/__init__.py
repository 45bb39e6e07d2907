"""State of a search: its start, the best schedule and bound, and the conversion of both to common ticks."""
