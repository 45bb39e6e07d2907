"""Relaxed decision diagrams over the orders of a chain's passes: lower bounds, and completion bounds for searches.

- `compile.py` compiles any diagram, layer by layer; `model.py` is the interface of its model, `models/` has the models.
- `steps.py` is the relaxation of plain passes that `modelled_steps.py` makes of a problem; `activation_modes/` is that
  with modes of activations; `completion.py` bounds what must follow a state.
- Bounds, cheapest first: `all_orders.py`, `threshold_bounds.py`, `by_device.py`, `joint_weights.py`,
  `activation_mode_bounds.py`. Each runs in slices by the subsolver in `solver/engine/subsolvers/bounds/`.
- `thresholds.py` chooses the values to refute, `certificate.py` writes the evidence, `params.py` has all limits.
"""
