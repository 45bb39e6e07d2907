"""Lower bounds in closed form, and for ways of saving memory; tested against exhaustive enumeration."""
