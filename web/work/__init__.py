"""Tasks for the page, each run in a process of its own that can be ended at any time.

- `everything.py` lists them: `start.py`, `schedules.py`, `search.py`, `planning.py`, `files.py`.
- `process.py` is the process, with its limit of memory, `channel.py` its connection to the server.
"""
