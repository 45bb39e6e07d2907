"""The training step of a plan in `--json`: its parts, the rates assumed, and the expected error."""

from __future__ import annotations

from pipesched.files.model_configs.expected_error import expected_error
from pipesched.results.plan import Plan
from pipesched.results.plan_figures import step_time


def step_document(found: Plan) -> dict[str, object]:
    """Return `step` in the file's unit, None without a plan; `assumed` and `expected_error` if layers were derived."""
    training = found.problem.step
    step = None if found.best is None else step_time(found.problem, found.best).document()
    error = None
    if training is not None and training.device is not None:
        error = expected_error(training.device, training.experts > 0)._asdict()
    return {"step": step, "assumed": {} if training is None else dict(training.assumed), "expected_error": error}
