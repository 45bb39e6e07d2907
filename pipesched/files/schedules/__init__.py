"""Reading and writing of the parts of schedule files: `reader.py`, and names of tasks in `task_texts.py`."""
