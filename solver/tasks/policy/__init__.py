"""Dispatching by a policy: the policy's numbers, the dispatching, and the search for better numbers."""
