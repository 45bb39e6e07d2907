"""Lower bounds in closed form, and for modes of saving memory; tested against exhaustive enumeration."""
