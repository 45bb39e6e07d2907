"""The step of training of a plan as `--json` has it: its parts, the rates assumed, and the error to expect."""

from __future__ import annotations

from pipesched.files.model_configs.expected_error import expected_error
from pipesched.results.plan import Plan
from pipesched.results.plan_figures import step_time


def step_document(found: Plan) -> dict[str, object]:
    """`step` in the file's unit, None without a plan; `assumed` and `expected_error` of layers derived from a model."""
    training = found.problem.step
    step = None if found.best is None else step_time(found.problem, found.best).document()
    error = None
    if training is not None and training.device is not None:
        error = expected_error(training.device, training.experts > 0)._asdict()
    return {"step": step, "assumed": {} if training is None else dict(training.assumed), "expected_error": error}
