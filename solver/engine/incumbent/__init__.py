"""What a search knows of its answer: what it starts from, the best schedule and bound, and both in common ticks."""
