"""Subsolvers that search lower bounds, one per file."""
