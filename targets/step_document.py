"""The training step of a plan in `--json`: its parts, the rates assumed, and the expected error."""

from __future__ import annotations

from pipesched.files.model_configs.expected_error import expected_error
from pipesched.results.plan import Plan
from pipesched.results.plan_figures import step_time


def step_document(found: Plan) -> dict[str, object]:
    """Return the keys of `plan --json` on the training step, by name.

    `step` has its parts in the file's unit; None without a plan. `assumed` has the rates of the device from which
    layers were derived; it is empty where the file lists layers. `expected_error` has the error that was measured with
    these rates; None where the file lists layers or names no hardware.
    """
    training = found.problem.step
    step = None if found.best is None else step_time(found.problem, found.best).document()
    error = None
    if training is not None and training.device is not None:
        error = expected_error(training.device, training.experts > 0, training.mixer is not None)._asdict()
    return {"step": step, "assumed": {} if training is None else dict(training.assumed), "expected_error": error}
