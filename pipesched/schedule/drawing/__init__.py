"""Shared parts of all drawings of a timeline, without a drawing library.

- `boxes.py` has the box of each task, `colours.py` their colours, `round_times.py` the labels of an axis; `sampling.py`
  is for more boxes than columns, `svg.py` the chart of notebooks.
"""
