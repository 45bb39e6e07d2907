"""Bound by crossings of steps of some stages of a chain, where those of all stages of their devices are too many."""
