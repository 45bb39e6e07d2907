"""Measurement of a PyTorch model stage by stage: time, memory, transfers.

- `profiler.py` is the call, `processes.py` runs it on all devices; `chain.py` finds the inputs of stages.
- `stage_bench.py` measures one stage with the passes of `stage_passes.py`, `memory_meter.py` their memory,
  `transfer.py` transfers.
"""
