"""Tables and texts that commands print or write.

- `schedule_table.py` is the table of schedules, `solved/` what `solve` says, `plans/` what `plan` and `layouts` say.
- `html/` makes `report.html`, `measured/` reads runs, `timed_files.py` writes files within the time limit.
"""
