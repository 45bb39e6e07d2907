"""Modules that read the parts of a plan file: its keys, their checks, and its layers.

- `schema.py` lists the keys, `fields.py` the types that only a plan has; `files/plan_file.py` reads the whole.
- `checks.py` has checks of several keys; each feature says which others it excludes.
- `layers.py` and `derived_layers.py` make layers of a model's shape and the hardware.
- `units.py` chooses the tick and the step of memory; `features/` has features, one module each.
"""
