"""Detection of plan problems that memory never limits: a device could take all layers and all micro-batches at once."""

from __future__ import annotations

from fractions import Fraction

from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.relaxed.ample_memory import NEVER_LIMITS, asked


def why_no_plan_is_limited(plan: PlanProblem) -> str | None:
    """Return a sentence saying why the memory limit never matters; None if it may matter, or there is no limit."""
    capacity = plan.cluster.capacity
    if capacity is None:
        return None
    gather = plan.model.parameters.gather
    # Each F, B and BW may hold parameters of its own, or every stage holds them once.
    gatherings = 2 * plan.microbatches if gather and gather.each_pass else 1
    stages = max((choice.on(plan.cluster.devices).stages for choice in plan.choices), default=1)
    needed = gatherings * stages * gather.memory if gather else Fraction(0)
    for layer in plan.every_layer:
        activation = layer.activation + max(Fraction(0), -layer.freed_by_backward)
        needed += layer.count * (layer.memory + plan.microbatches * activation + gatherings * layer.gathered)
    # A bidirectional placement holds every layer twice.
    needed *= 2
    if needed > min(capacity):
        return None
    unit = plan.cluster.memory_unit
    return (
        f"{NEVER_LIMITS}: all layers with all micro-batches at once take at most {plain(float(needed))} {unit}, and a "
        f"device has {plain(float(min(capacity)))} {unit}{asked(needed, min(capacity))}"
    )
