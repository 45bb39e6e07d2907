"""Measured traces of executed schedules: reading, calibration of costs, comparison with the prediction.

- `trace.py` is a measured run, `calibration.py` the problem with its durations, `comparison.py` how far it is off.
- `late_starts.py` explains a longer step, with `step_arcs.py` and `pass_causes.py`.
- `memory_fit.py` fits layers' memory to peaks, `missing_peaks.py` says what to measure next, `fitted_layers.py` writes
  the layers.
"""
