"""Traces of other programs, read as problems: one module for each format, found by the registry."""
