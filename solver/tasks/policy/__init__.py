"""Dispatching by a policy: what its numbers are, the dispatching, and the search for better numbers."""
