"""Lower bounds: analytic, Lagrangian, and destructive; tested against exhaustive enumeration."""
