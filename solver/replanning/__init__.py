"""Ordering anew what remains of an iteration under way."""
