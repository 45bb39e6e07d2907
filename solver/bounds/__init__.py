"""Lower bounds: analytic, Lagrangian, by linear relaxation, and destructive; tested against exhaustive enumeration."""
