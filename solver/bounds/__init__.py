"""Analytic lower bounds on makespan and span, without a search; tested against exhaustive enumeration.

- `analytic/catalogue.py` is the registry: one argument a file in `analytic/`, tried by `rank`.
- `saving/certificates.py` adds those for activations that may be offloaded or recomputed.
- Bounds on the period are not here: see `_BOUNDS` of `solver/cyclic/period_bounds.py`, checked by `checking/period.py`.
"""
