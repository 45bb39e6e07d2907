"""Lower bounds in closed form, also for offloading and recomputation; tested against exhaustive enumeration."""
