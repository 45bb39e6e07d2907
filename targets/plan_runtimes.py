"""The runtimes that can express a plan and run its order."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import PlanCandidate
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat
from runtime.partitions.plan_settings import staged_plan, written
from targets.schedules import runs


def runtimes_of(problem: PlanProblem, candidate: PlanCandidate) -> list[str]:
    """Return the names of the runtimes that can run a plan in its order.

    First come those with settings for its partition, by name, then those that need the order alone. Empty if none can.
    """
    with_settings = [form.name for form in PARTITION_FORMATS if _runs(form, problem, candidate)]
    given = [name for name in RESTRICTIONS if name not in PARTITION_FORMATS.names()]
    return with_settings + [name for name in given if runs(candidate.timeline, name)]


def _runs(form: PartitionFormat, problem: PlanProblem, candidate: PlanCandidate) -> bool:
    order = candidate.schedule.partition(":")[0]
    if form.limits.schedules and order not in form.limits.schedules:
        return False
    try:
        written(form, staged_plan(problem, candidate))
    except BadInput:
        return False
    return form.name not in RESTRICTIONS or runs(candidate.timeline, form.name)
