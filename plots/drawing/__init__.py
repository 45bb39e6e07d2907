"""Shared parts of pictures: frame, zoom, labels, marks, boxes of streams, legend.

- `frame.py` has axes and rows, `zoom.py` the part that is shown, `gantt_legend.py` the legend.
- `box_numbers.py` writes on boxes, `labels.py` next to marks; `stream_boxes.py` and `stream_marks.py` are of streams,
  `memory_heat.py` and `memory_marks.py` of memory.
"""
