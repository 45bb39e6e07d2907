"""Values of keys in files: their types, error messages and JSON Schema.

- `field_types.py` lists the types, `field.py` makes one of a check, `section.py` is the base of sections of keys.
- `link_times.py` has times of transfers (the field: `transfer_field.py`), `stage_placement.py` the devices of stages,
  `blocks_field.py` overlapped blocks, `offload_sections.py`, `parameter_sections.py` and `sweep_field.py` sections.
- `kind.py` says which values may have units, `together.py` how features that exclude each other are stated.
"""
