"""Bound by crossings: in which order the forwards and backwards of a chain pass each other, with memory for few."""
