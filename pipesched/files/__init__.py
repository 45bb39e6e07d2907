"""Problem, plan, schedule and peaks files: reading, checks, exact numbers, writing.

- `problem_file.py` reads a problem file: keys in `problems/schema.py`, mistakes over several keys in
  `problems/checks.py`, times as ticks in `problems/times_in_ticks.py` (the tick itself in `rounding.py`), and
  `features/` for keys that a file has only where it uses them. `problems/document.py` is the inverse.
- `plan_file.py` reads a plan file (`plans/`, `model_configs/`), `plan_answer.py` a plan that was found.
- `schedule_file.py` reads and writes schedules, `state_file.py` iterations under way.
- `limits.py` has the largest sizes accepted, `schema_errors.py` the text of mistakes, `atomic_write.py` what happens
  where a file cannot be written (a full disk leaves the old file).
"""
