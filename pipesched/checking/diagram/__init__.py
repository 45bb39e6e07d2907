"""The check of relaxed decision diagrams: a replay of every relaxation that evidence may name.

- `argument.py` is the argument about some stages, `activation_modes.py` that with modes of activations.
- `replay.py` goes through the layers of any model with the interface of `model.py`; `labels.py` prunes and merges.
"""
