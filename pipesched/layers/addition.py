"""Additions of a plan problem: what it has besides layers that a partition cuts, such as stages on fixed devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipesched.layers.fixed_module import FixedModule
from pipesched.layers.layer import LayerType
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks

if TYPE_CHECKING:
    from pipesched.layers.plan_problem import PlanProblem


@dataclass(frozen=True)
class Addition:
    """Something that a plan problem has besides layers that a partition cuts.

    Each method and property adds nothing by default. At most one addition of a plan problem has modules, and with them
    devices of its own, since nothing says how passes of two of them are ordered. Bounds over partitions count the work
    and memory of `modules` and the task of `before_steps` alone; everything else that an addition adds must only
    lengthen schedules or take memory.
    """

    @property
    def own_devices(self) -> int:
        """The number of devices that the addition has for itself.

        They are the last ones, after those of the cluster.
        """
        return 0

    @property
    def layers(self) -> tuple[LayerType, ...]:
        """The layers besides those that a partition cuts, each with its `count`."""
        return ()

    def modules(self, _plan: PlanProblem, /) -> tuple[FixedModule, ...]:
        """Return the stages that no partition changes, which the problem of every partition has."""
        return ()

    def added(self, problem: Problem, _plan: PlanProblem, /) -> Problem:
        """Return the problem of a partition, all modules included, with what this adds besides modules."""
        return problem

    def before_steps(self, _plan: PlanProblem, /) -> Ticks | None:
        """Return the ticks of a task that waits for all reductions, and that all optimizer steps wait for.

        It occupies all devices with a stage that trains, and is not run where no stage trains. None without such a
        task.
        """
        return None

    def open_decisions(self) -> Mapping[str, Callable[[PlanProblem], PlanProblem]]:
        """Return by name each possible outcome of the addition's open decision; empty if nothing is open.

        An outcome is a function from the plan problem to the narrower one in which it is decided so.
        """
        return {}

    def of_settings(self, plan: PlanProblem, /) -> PlanProblem:
        """Return the plan problem as far as the settings of a runtime can express it.

        `BadInput` for an addition that they cannot express; its text says what was found and what is allowed.
        """
        return plan
