"""The type of a relaxation, and of a problem to which some were applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.network.task_network import TaskNetwork
from pipesched.problem.problem import Problem


@dataclass(frozen=True)
class Relaxation:
    """A rewrite to a poorer problem: its optimum, plus what is added back, is never above that of the problem.

    `relax` leaves a problem as it is where the feature is absent. `argument` says why no optimum rises. `added_back`
    are ticks that every schedule of the problem takes besides those of the poorer one. `note` is a sentence for
    certificates of the poorer problem, or nothing where they read as those of the problem. `drop` is what the rewrite
    leaves out of the task network, which only relaxes (`TaskNetwork.drop`): `argument` then speaks of what remains.
    """

    name: str
    relax: Callable[[Problem], Problem]
    argument: str
    added_back: Callable[[Problem], int] = lambda _: 0
    note: Callable[[Problem], str] = lambda _: ""
    drop: Callable[[Problem], TaskNetwork] | None = None


class Step(NamedTuple):
    """A relaxation, and the problem that it was applied to."""

    relaxation: Relaxation
    of: Problem


@dataclass(frozen=True)
class RelaxedProblem:
    """A problem and the relaxations that made it, in the order in which they were applied."""

    problem: Problem
    steps: tuple[Step, ...] = ()

    def without(self, relaxation: Relaxation) -> RelaxedProblem:
        """With one relaxation more; the same where the problem lacks its feature."""
        poorer = relaxation.relax(self.problem)
        return self if poorer is self.problem else RelaxedProblem(poorer, (*self.steps, Step(relaxation, self.problem)))

    @property
    def added_back(self) -> int:
        """Ticks to add to a lower bound of the poorer problem for one of the original problem."""
        return sum(step.relaxation.added_back(step.of) for step in self.steps)

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences for a certificate of the poorer problem, the last relaxation first."""
        return tuple(note for step in reversed(self.steps) if (note := step.relaxation.note(step.of)))
