"""Execution and profiling of schedules with PyTorch, an optional dependency that no other package imports.

- `run.py` runs a schedule in the processes of `processes/`: by PyTorch's runtime (`runtime.py`), or by our executor
  (`program_executor.py`) where that has no such schedule; `stages_runtime.py` offers it to the user's own loop.
- `stages.py` builds the stages of one process, `passes/` has their passes; `tracer.py` records times.
- `reference.py` and `gradient_check.py` compare gradients; `profiling/` measures stages, `stage_chain.py` runs them.
- `load_model.py` loads the user's model, `models.py` and `sleep_model.py` are our own, `user_code.py` finds an error in
  the user's code.
"""
