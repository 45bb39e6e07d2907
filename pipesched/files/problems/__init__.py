"""Modules for the parts of a problem file: its keys, their checks, and their conversion to and from a `Problem`.

- `schema.py` lists the keys; `checks.py` has the checks of several keys that every file may have.
- `times_in_ticks.py`, `memory_in_steps.py` and `stages.py` make numbers and stages of a problem, `pass_tasks.py` the
  tasks of passes; `document.py` writes a problem as a file again.
- `visualiser_file.py` reads the files of the older visualiser.
"""
