"""Models of decision diagrams, one a file: states, moves, dominance, and what is merged."""
