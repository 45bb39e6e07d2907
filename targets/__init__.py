"""Schedules and plans for a runtime: searched among those it can express, and written in its terms.

- `schedules.py` is `solve --for`, `plans.py` is `plan --for`; `plan_runtimes.py` lists the runtimes of plans.
- `layout_race.py` races the layouts of a model, `layout_rows.py` decides which are equal and which one is recommended,
  and `layout_answer.py` has the answer with its plan; `layouts_in_code.py` is the same for Python.
- `step_document.py` writes the training step of a plan for `--json`.
"""
