"""Executor of a schedule's order inside Megatron-Core: sources of the module that `export --format megatron` writes.

They import nothing of this project but each other, so that the module needs nothing but Megatron-Core.

- `install.py` replaces Megatron's functions, `call.py` reads the arguments of a call, `iteration.py` runs the passes of
  one iteration, `evaluation.py` forwards alone; `placement.py` puts stages in a V.
- `forwards.py`, `activations.py`, `weight_gradients.py` and `transformer_engine.py` (W), `reductions.py`: the passes.
- `batches.py` and `random_state.py`: data and random numbers of each micro-batch, in any order.
"""
