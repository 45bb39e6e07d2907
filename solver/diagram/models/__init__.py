"""Models of decision diagrams, one per file: states, moves, dominance, and merging."""
