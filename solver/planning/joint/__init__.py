"""Joint search over partition and order by simulated annealing; every proposal is simulated.

- `search.py` is the search, `moves.py` its changes; `draft.py` has partitions and `orders.py` orders as integers.
"""
