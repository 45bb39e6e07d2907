"""The command line of pipesched: one module for each command.

- `main.py` runs a command and turns errors into messages and exit codes.
- `options/` has options that several commands share (limits, seed and Ctrl-C in `options/search.py`).
- `reports/` has what commands print: for `solve` in `reports/solved/solve.py`, of one schedule in `reports/figures.py`,
  tables of schedules in `reports/schedule_table.py`; `reports/timed_files.py` writes the output files.
- `shared/` has the terminal, input files (`shared/file_arguments.py`), and the end by a signal
  (`shared/termination.py`).
"""
