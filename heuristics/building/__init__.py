"""Building blocks of published schedules: requirements on a problem, orders that several share, and list scheduling.

- `requirements.py` says when a schedule does not apply, `patience.py` how long one may search.
- Orders: `interleaved_walks.py` of the 1F1B family, `v_blocks.py` of the V family, `growing_orders.py` pass by pass,
  `serial_sgs.py` into gaps, `drawing_together.py` closes gaps, `microbatch_orders.py` for unequal micro-batches.
- Tasks and copies: `task_interleaving.py`, `memory_saving.py`, `copies_with_slots.py`, `shared_streams.py`.
"""
