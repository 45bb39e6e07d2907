"""Replanning of the remaining tasks of an iteration under way."""
