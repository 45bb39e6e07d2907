"""Types of a relaxation, and of a relaxed problem together with the relaxations that led to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pipesched.problem.network.task_network import TaskNetwork
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, Ticks


@dataclass(frozen=True)
class Relaxation:
    """A rewrite to a simpler problem.

    No schedule of the problem is shorter than the simpler problem's optimum. `relax` returns the simpler problem, or
    the problem itself where it lacks the feature that is dropped. `argument` says why the optimum does not rise.
    `added_back` returns ticks that every schedule of the problem takes in addition to those of the simpler problem: a
    bound of the simpler problem plus these ticks is a bound of the problem. `note` returns a sentence for certificates
    of the simpler problem; it is empty where they read the same.

    `drop` returns the task network without what the rewrite leaves out, which only relaxes (`TaskNetwork.drop`), and is
    None for a rewrite of another kind; `argument` then covers whatever else the rewrite changes. `sharing` returns the
    devices that in the simpler problem also have the memory of others; evidence about it must name them.
    """

    name: str
    relax: Callable[[Problem], Problem]
    argument: str
    added_back: Callable[[Problem], Ticks] = lambda _: 0
    note: Callable[[Problem], str] = lambda _: ""
    drop: Callable[[Problem], TaskNetwork] | None = None
    sharing: Callable[[Problem], tuple[DeviceId, ...]] = lambda _: ()


class RelaxationStep(NamedTuple):
    """One relaxation, and the problem `of` to which it was applied."""

    relaxation: Relaxation
    of: Problem


@dataclass(frozen=True)
class RelaxedProblem:
    """A relaxed problem, and the relaxations that led to it.

    `problem` is the result of all of them. `steps` are in the order applied, each one a relaxation with the problem to
    which it was applied; without steps `problem` is the original.
    """

    problem: Problem
    steps: tuple[RelaxationStep, ...] = ()

    def without(self, relaxation: Relaxation) -> RelaxedProblem:
        """Return the problem with one more relaxation applied; itself if the problem lacks the relaxation's feature."""
        poorer = relaxation.relax(self.problem)
        return (
            self
            if poorer is self.problem
            else RelaxedProblem(poorer, (*self.steps, RelaxationStep(relaxation, self.problem)))
        )

    @cached_property
    def added_back(self) -> Ticks:
        """The ticks to add to a lower bound of the relaxed problem to get one of the original problem."""
        return sum(step.relaxation.added_back(step.of) for step in self.steps)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """The sentences that a certificate of the relaxed problem adds, that of the last relaxation first."""
        return tuple(note for step in reversed(self.steps) if (note := step.relaxation.note(step.of)))

    @cached_property
    def sharing(self) -> tuple[DeviceId, ...]:
        """The devices, in ascending order, that in the relaxed problem have the memory of all their partners together.

        Of a group, these are the ones that the common memory limits more than their own; empty without such a step.
        """
        return tuple(sorted({device for step in self.steps for device in step.relaxation.sharing(step.of)}))
