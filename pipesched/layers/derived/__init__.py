"""Layers derived from a transformer's shape and the hardware, by formulas for parameters, operations and memory.

- `derive.py` is the call, `shape.py` its input: shape, training, parallelism, rates; `assumptions.py` lists all
  assumptions.
- `operations.py` counts products and `kernels.py` their seconds; `exchange.py` has communication inside a stage,
  `data_links.py` that of data parallelism; `model_operations.py` counts operations of the whole model.
- `mixer_kinds.py` has the kinds of mixers of hybrid models (Mamba, delta nets), `mixer.py` what they cost.
- `activations.py` and `parameters.py` count bytes, `adapters.py` those of LoRA.
"""
