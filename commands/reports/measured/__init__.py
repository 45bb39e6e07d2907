"""Reports on executed runs, profiles and measured traces.

- By command: `run.py`, `profile.py`, `rates_fit.py` (`calibrate`), `memory_fit.py` (`fit-memory`).
- `traced.py` reads traces, `measured_table.py` compares them; `late_starts.py` and `late_starts_html.py` say why a step
  took longer.
"""
