"""A state of an iteration under way: which tasks have begun, when, and from which moment the rest is ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.passes import BW, B, Pass, Task, W
from pipesched.problem.problem import Problem


class Ran(NamedTuple):
    """When a task started and ended, or will end where it runs, in ticks."""

    start: int
    end: int


@dataclass(frozen=True)
class State:
    """Of `ran`, which have begun by `now`, nothing changes; all others start at `now` or later. In ticks."""

    now: int
    ran: Mapping[Task, Ran]

    def passes(self, problem: Problem) -> frozenset[Pass]:
        """The passes that have begun or may still run: those of both modes where a backward has not begun."""
        begun = {task.of for task in self.ran}
        over = {p._replace(kind=kind) for p in begun if p.kind is BW for kind in (B, W)}
        over |= {p._replace(kind=BW) for p in begun if p.kind is B}
        network = problem.network
        return frozenset(Pass(*of, j) for of in network.tasks for j in network.numbers[of]) - over
