"""Traces of other programs, read as problems: one module for each format, found by the registry.

- `catalogue.py` is the registry; the formats are `kineto.py`, `nsys.py`, `primus.py`, `megatron_timers.py` and
  `megatron_summary.py`; `memory_snapshot.py` reads snapshots of torch's allocator.
- `annotated.py` and `rank_events.py` find passes among events, `pipeline_trace.py` is what was read,
  `problem_of_trace.py` the problem of it.
"""
