"""The searches for plans: over placements, over the partitions of one, and for orders."""
