"""Beam search over the forwards and gradients of all chains, and their overlapped blocks.

- `search.py` is the search; `tables.py` makes its arrays, `schedules.py` the schedule of its moves.
- Compiled: `children.py` expands a layer, `nodes.py` is one transition, `ranks.py` and `completion.py` choose nodes.
"""
