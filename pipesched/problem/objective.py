"""Objectives: values of a schedule to minimise, as functionals over the starts and ends of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from pipesched.problem.quantities import Ticks
from pipesched.registry import Registry


class Leaves(StrEnum):
    """The free memory that an objective maximises before it minimises the time.

    `PER_DEVICE` is the memory that a device has left at its peak, the least of all devices. `PER_LAYER` divides that
    memory by the number of the device's layers that store keys and values, and takes the least quotient.
    """

    PER_DEVICE = "free_memory"
    PER_LAYER = "free_memory_per_layer"


class _ByName(type):
    """The type of `Objective`, whose attributes in capitals are the registered objectives: `Objective.SPAN`."""

    def __getattr__(cls, name: str) -> Objective:
        if not name.isupper() or name.lower() not in OBJECTIVES:
            raise AttributeError(f"type object 'Objective' has no attribute {name!r}")
        return OBJECTIVES[name.lower()]


@dataclass(frozen=True, repr=False)
class Objective(metaclass=_ByName):
    """The quantity of a schedule to minimise (docs/concepts.md): the largest time of a device, or the period.

    The time of a device ends with its last task. It begins at time 0, or with `by_device` at the start of the device's
    first task. With `repeats` the value is instead a period: the time after which the schedule repeats, for each of the
    micro-batches in between.

    If the objective includes work for parameters, `passes` is the objective for the same problem without such work,
    else None. `place` is the objective's place in lists. With `leaves` the free memory is maximised first, and the time
    is minimised among the schedules that leave the most; `name` is then still that of the time. None: time alone.

    Formulations, bounds, simulator and check each compute the value from these fields, and never ask for the name.
    """

    name: str
    place: int
    by_device: bool = False
    repeats: bool = False
    passes: Objective | None = None
    leaves: Leaves | None = None

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        first = "" if self.leaves is None else f", most {self.leaves} first"
        return f"<Objective.{self.name.upper()}: {self.name!r}{first}>"

    def then(self, time: Objective) -> Objective:
        """Return the objective that maximises the free memory named by this one first, and then minimises `time`."""
        return replace(time, leaves=self.leaves)

    @property
    def of_passes(self) -> Objective:
        """The objective for the same problem without gatherings, reductions and optimizer steps.

        It is `passes`, or itself if that is None.
        """
        return self if self.passes is None else self.passes

    @property
    def of_one_iteration(self) -> bool:
        """True if the value depends on starts and ends of one iteration's passes alone, without work for parameters."""
        return not self.repeats and self.passes is None

    @property
    def from_zero(self) -> bool:
        """True if the value is the end of the last pass of one iteration, from time 0."""
        return self.of_one_iteration and not self.by_device

    @property
    def with_article(self) -> str:
        """The name of the objective with an article, for sentences."""
        return f"an {self.name}" if self.name[0] in "aeiou" else f"a {self.name}"

    def value_of(self, reach: Iterable[tuple[Ticks, Ticks]]) -> Ticks:
        """Return the value of an iteration, in ticks, from (start of first task, end of last) of each device."""
        return max(end - (begin if self.by_device else 0) for begin, end in reach)


OBJECTIVES: Registry[Objective] = Registry("pipesched.problem.objectives", "objective")


def objectives() -> list[Objective]:
    """Return the objectives that are times, without those that maximise free memory, in the order of lists."""
    return [one for one in of_problems() if one.leaves is None]


def of_problems() -> list[Objective]:
    """Return the objectives that a problem may have, in the order of lists.

    They are all but the memory per layer, which plans alone have.
    """
    return [one for one in sorted(OBJECTIVES, key=lambda one: one.place) if one.leaves is not Leaves.PER_LAYER]
