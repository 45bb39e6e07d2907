"""Traces of other programs read as problems: one format a file, found by the registry."""
