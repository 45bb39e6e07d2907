"""Tasks for the page, each run in a process of its own that can be ended at any time."""
