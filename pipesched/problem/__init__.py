"""The problem to solve: passes, placement, costs, memory, objective, and the precedences between passes.

- `problem.py` has what a problem is, `stage.py` the costs of a stage, `placement.py` where stages are, `passes.py` the
  kinds of passes, `features/` all other parts of a problem, `objectives/` what may be minimised.
- `lowering/` makes the task network of `network/` from these: `lowering/dependencies.py` says what
  precedes what, `lowering/stage_memory.py` what takes memory.
- `quantities.py` has the names of whole numbers in annotations (ticks, steps of memory, stages, devices),
  `units.py` the units of ticks and of memory; the tick of a file is chosen in `files/rounding.py`.
- `relaxed/` has simpler problems for bounds, `chains/` problems of several chains, `attainable_spans.py` the values
  that a schedule can have.
"""
