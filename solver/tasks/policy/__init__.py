"""Dispatching by a policy: the numbers of a policy, the schedule that they give, and the search for better numbers."""
