"""The check of crossings of steps of some stages of a chain."""
