"""Search for plans: partition, placement, recomputation and order of passes, with a lower bound over all plans."""
