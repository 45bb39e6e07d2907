"""Result of a plan search for the most free memory: the amount found, and the one that no plan exceeds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.layers.free_memory import shares
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Leaves, PlanProblem
from pipesched.problem.formatting import plain
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class MostFree:
    """Free memory in the file's unit: `value` is left on every device, per layer where asked; no plan leaves more than
    `bound`.
    """

    value: Fraction
    bound: Fraction

    @property
    def proved(self) -> bool:
        """True if no plan leaves more."""
        return self.value == self.bound

    def sentence(self, plan: PlanProblem) -> str:
        """Return a sentence on the amount and the bound."""
        each = "per layer with keys and values" if plan.leaves is Leaves.PER_LAYER else "on every device"
        more = "no plan leaves more" if self.proved else f"no plan leaves more than {plain(float(self.bound))}"
        return f"free memory: {plain(float(self.value))} {plan.cluster.memory_unit} {each} at least; {more}"

    def document(self, plan: PlanProblem) -> dict[str, object]:
        """Return the object `free_memory` of `plan --json`."""
        return {
            "value": float(self.value),
            "upper_bound": float(self.bound),
            "per_layer": plan.leaves is Leaves.PER_LAYER,
            "proved": self.proved,
        }


def free_memory(plan: PlanProblem, choice: Choice, partition: Partition, timeline: Timeline) -> Fraction:
    """Return the free memory that a schedule of a partition leaves, in the file's unit, per layer where asked."""
    problem = timeline.problem
    peaks = measure(timeline).peak_quanta
    left = [
        (room - peak) * problem.resolution / share
        for room, peak, share in zip(problem.room, peaks, shares(plan, choice, partition), strict=True)
        if room is not None and share
    ]
    return min(left)
