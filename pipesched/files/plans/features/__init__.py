"""Features of plan files, one module each: keys, checks, effect on the plan problem, and keys of its exact document.

- `catalogue.py` says what a feature states, and in which order its parts apply.
- `rendezvous.py` is the key `both` (blocking transfers), `frozen.py` frozen layers and adapters; the others are named
  after their keys.
"""
