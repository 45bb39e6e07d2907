"""Units of annealing: the passes of a schedule with fixed modes, or operations whose modes are open."""
