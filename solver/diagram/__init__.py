"""Relaxed decision diagrams over the orders of a chain's passes: lower bounds, and what orders of them may follow."""
