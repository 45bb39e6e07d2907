"""Pictures of a timeline: each plot is one module that draws on given matplotlib axes.

- `catalogue.py` lists the plots, `render.py` makes a figure of one and saves it, `of_results.py` chooses that of a
  result.
- `drawing/` has what plots share; the colour of a pass is in `pipesched/schedule/drawing/colours.py`, from the kinds of
  `pipesched/problem/passes.py`, and where warm-up and cool-down end in `drawing/stream_boxes.py`.
- `html/` makes pages (the chart is drawn by the scripts of `html/chart/`), `text/` charts of characters, `sweeps/`
  pictures of sweeps.
"""
