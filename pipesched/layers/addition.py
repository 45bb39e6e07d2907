"""Additions of a plan problem: what it has besides layers that a partition cuts, such as stages on fixed devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from typing import ClassVar, Generic, NamedTuple, TypeVar

from pipesched.layers.layer import LayerType
from pipesched.layers.stage_costs import StageCosts
from pipesched.problem.problem import Problem

Plan = TypeVar("Plan")


class Joins(Enum):
    """The tie between the stages of a module and those that a partition makes."""

    # Copies take the module's passes in turn; each pass feeds the first stage.
    FEEDS = auto()
    # A part of every pass on each device: all of them before the first stage's forward, and after its backward.
    PARTS_BEFORE = auto()
    # A part of every pass on each device: all of them between the last stage's forward and its backward.
    PARTS_AFTER = auto()


class FixedStage(NamedTuple):
    """A stage that no partition changes: its device, how many layers it has, and the costs of a pass on that device."""

    device: int
    layers: Fraction
    costs: StageCosts


class FixedModule(NamedTuple):
    """Stages that no partition changes, all of one layer type: the chain of each copy.

    One pass serves `serves` micro-batches.
    """

    layer: LayerType
    copies: tuple[tuple[FixedStage, ...], ...]
    joins: Joins
    serves: int = 1

    @property
    def stages(self) -> tuple[FixedStage, ...]:
        """All stages, copy by copy."""
        return tuple(stage for copy in self.copies for stage in copy)

    @property
    def in_parts(self) -> bool:
        """True if its stages are parts of a layer, which add no overhead of a stage."""
        return self.joins is not Joins.FEEDS


@dataclass(frozen=True)
class Addition(Generic[Plan]):
    """An addition of a plan problem; the default of each method and property adds nothing.

    One that is `of_whole` is added to a problem after all others, since it concerns their stages too.

    Bounds over partitions count the work and memory of `modules` alone: everything else that it adds to a problem must
    only lengthen schedules or take memory.
    """

    of_whole: ClassVar[bool] = False

    @property
    def own_devices(self) -> int:
        """The number of devices that it has for itself, after those of the cluster."""
        return 0

    @property
    def layers(self) -> tuple[LayerType, ...]:
        """The layers besides those that a partition cuts, each with its `count`."""
        return ()

    def modules(self, _plan: Plan, /) -> tuple[FixedModule, ...]:
        """Return the stages that no partition changes."""
        return ()

    def added(self, problem: Problem, _plan: Plan, /) -> Problem:
        """Return the problem of a partition with this addition."""
        return problem

    def narrowings(self) -> Mapping[str, Callable[[Plan], Plan]]:
        """Return by name the decisions that it leaves open, as functions to a narrower problem; empty if none."""
        return {}

    def of_settings(self, plan: Plan, /) -> Plan:
        """Return the plan problem as far as a runtime's settings express it.

        `BadInput` for what they do not, as what was found and what is allowed.
        """
        return plan
