"""Dispatching by a policy: the numbers of a policy, the schedule that they give, and the search for better numbers.

- `policy.py` has the numbers, `dispatcher.py` what they mean for jobs, `search.py` changes them; compiled: `kernel.py`,
  with the arrays of `state.py`.
"""
