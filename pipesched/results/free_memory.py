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
    """The most free memory of a plan search, in the file's unit: every device has at least `value` left, and no plan
    leaves more than `bound`.

    The amounts are those of a device, or of each of its layers with keys and values if the objective is free memory per
    layer.
    """

    value: Fraction
    bound: Fraction

    @property
    def proved(self) -> bool:
        """True if no plan leaves more."""
        return self.value == self.bound

    def sentence(self, plan: PlanProblem) -> str:
        """Return a sentence on the free memory and its bound."""
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
    """Return the free memory that a schedule leaves, the least over the devices, in the file's unit.

    If the objective is free memory per layer, that of each device is divided by its layers with keys and values.
    """
    problem = timeline.problem
    peaks = measure(timeline).peak_quanta
    left = [
        (room - peak) * problem.resolution / share
        for room, peak, share in zip(problem.room, peaks, shares(plan, choice, partition), strict=True)
        if room is not None and share
    ]
    return min(left)
