"""Lower bounds: analytic, by decision diagrams, and destructive; tested against exhaustive enumeration."""
