"""The search for plans: partitions, placements, recomputation and orders, with one lower bound over all of them."""
