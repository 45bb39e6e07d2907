"""Result of a search for the most free memory: the amount found, and the one that no schedule or plan exceeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pipesched.layers.free_memory import shares
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.quantities import MemorySteps
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class MostFree:
    """The most free memory of a search, in the file's unit.

    Every device has at least `value` left, and nothing leaves more than `bound`. The amounts are those of a device, or
    with `per_layer` of each of its layers with keys and values.
    """

    value: Fraction
    bound: Fraction
    per_layer: bool = False

    @property
    def proved(self) -> bool:
        """True if nothing leaves more."""
        return self.value == self.bound

    def sentence(self, unit: str, what: str) -> str:
        """Return a sentence on the free memory and its bound; `what` was searched for, a plan or a schedule.

        `unit` is that of memory.
        """
        each = "per layer with keys and values" if self.per_layer else "on every device"
        more = f"no {what} leaves more" + ("" if self.proved else f" than {plain(float(self.bound))}")
        return f"free memory: {plain(float(self.value))} {unit} {each} at least; {more}"

    def stated(self) -> dict[str, str]:
        """Return the object `free_memory` of schedule and plan files: `value` and `upper_bound` as exact text.

        They are in the file's unit, such as `159/2`. Amounts per layer have the key `per_layer`, too, with "yes".
        """
        layers = {"per_layer": "yes"} if self.per_layer else {}
        return {"value": str(self.value), "upper_bound": str(self.bound)} | layers

    def document(self) -> dict[str, object]:
        """Return the object `free_memory` of `solve --json` and `plan --json`.

        It has `value` and `upper_bound`, floats in the file's unit of memory. `per_layer` is True if these are amounts
        per layer, `proved` if nothing leaves more.
        """
        return {
            "value": float(self.value),
            "upper_bound": float(self.bound),
            "per_layer": self.per_layer,
            "proved": self.proved,
        }


def free_from(document: Mapping[str, object]) -> MostFree:
    """Read the free memory and its bound from the object `free_memory` of a file.

    KeyError, TypeError, ValueError or ArithmeticError for any other form.
    """
    value, bound = (Fraction(str(document[key])) for key in ("value", "upper_bound"))
    return MostFree(value, bound, "per_layer" in document)


def left_by(timeline: Timeline) -> MemorySteps:
    """Return the free memory that a schedule leaves, the least over the devices with a capacity, in steps.

    At least one device must have a capacity.
    """
    rooms, peaks = timeline.problem.room, measure(timeline).peak_quanta
    return min(room - peak for room, peak in zip(rooms, peaks, strict=True) if room is not None)


def free_memory(plan: PlanProblem, choice: Choice, partition: Partition, timeline: Timeline) -> Fraction:
    """Return the free memory that a schedule leaves, the least over the devices with a capacity, in the file's unit.

    If the objective is free memory per layer, that of each device is divided by its layers with keys and values, and
    devices without any are left out. At least one device must remain.
    """
    problem = timeline.problem
    peaks = measure(timeline).peak_quanta
    left = [
        (room - peak) * problem.resolution / share
        for room, peak, share in zip(problem.room, peaks, shares(plan, choice, partition), strict=True)
        if room is not None and share
    ]
    return min(left)
