"""Parts of running a schedule that do not need PyTorch: the job, its heartbeat, predicted times.

- `job.py` is what all processes get, `heartbeat.py` reports a stall, `torch_timing.py` predicts times,
  `torch_version.py` finds the version of CSV, `megatron.py` installs a schedule file in Megatron-Core.
"""
