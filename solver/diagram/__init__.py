"""Relaxed decision diagrams over the orders of a chain's passes: lower bounds, and completion bounds for searches."""
