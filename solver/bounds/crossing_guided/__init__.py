"""Bound by crossings of steps of some stages, where what remains after fewer of them says which labels are followed."""
