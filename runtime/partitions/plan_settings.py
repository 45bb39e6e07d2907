"""The settings of runtimes for a plan; where one cannot express it, of the best plan near it that it can."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipesched.errors import BadInput
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import Candidate, Plan
from runtime.partitions.adapted import adapted
from runtime.partitions.catalogue import PartitionFormat, PartitionSettings
from runtime.partitions.staged_model import StagedModel, staged


@dataclass(frozen=True)
class PlanSettings:
    """What one runtime is told. `refusal` says why it cannot run the plan; None where it can.

    `settings` are then those of `candidate`, the best that it can run among the other plans found and those with layers
    recomputed in ways that settings can say; both None where there is none.
    """

    form: PartitionFormat
    candidate: Candidate | None
    settings: PartitionSettings | None
    refusal: str | None = None

    def document(self) -> dict[str, object]:
        """For `plan --json`, where it was refused: the reason and what it can run instead."""
        document: dict[str, object] = {"reason": self.refusal, "instead": None}
        if self.candidate is not None and self.settings is not None:
            document["instead"] = {
                "placement": self.candidate.choice.placement,
                "chunks": self.candidate.choice.chunks,
                "partition": list(self.candidate.partition.counts),
                "recompute": list(self.candidate.partition.recompute_counts()),
                "value": float(self.candidate.value),
                "settings": dict(self.settings.values),
            }
        return document


def settings_of(plan: Plan, forms: Iterable[PartitionFormat]) -> list[PlanSettings]:
    """One entry a format; none where there is no plan."""
    if plan.best is None:
        return []
    others = [choice.best for choice in plan.choices if choice.best is not None and choice.best is not plan.best]
    more = [made for one in (plan.best, *others) for made in adapted(plan.problem, one)]
    found = sorted([*others, *more], key=lambda candidate: candidate.value)
    return [_of(plan.problem, form, plan.best, found) for form in forms]


def staged_plan(problem: PlanProblem, candidate: Candidate) -> StagedModel:
    """A plan as runtimes see it."""
    placement = candidate.timeline.problem.placement
    name = problem.name
    return staged(problem.model, candidate.partition, placement, problem.microbatches, candidate.schedule, name)


def _of(problem: PlanProblem, form: PartitionFormat, best: Candidate, others: list[Candidate]) -> PlanSettings:
    try:
        return PlanSettings(form, best, form.write(staged_plan(problem, best)))
    except BadInput as error:
        refusal = error.mistakes[0]
    for other in others:
        try:
            return PlanSettings(form, other, form.write(staged_plan(problem, other)), refusal)
        except BadInput:
            continue
    return PlanSettings(form, None, None, refusal)
