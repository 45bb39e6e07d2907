"""Replanning of the remaining tasks of an iteration in progress, as after a delay."""
