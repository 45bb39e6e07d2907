"""State of an iteration under way: the tasks that have begun, when, and the time from which the others are ordered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesched.problem.passes import BW, RECOMPUTATIONS, B, F, Pass, PassKind, Task, W
from pipesched.problem.problem import Problem


class Ran(NamedTuple):
    """When a task started and ended, or will end where it runs, in ticks."""

    start: int
    end: int


@dataclass(frozen=True)
class State:
    """Of `ran`, which have begun by `now`, nothing changes; all others start at `now` or later. In ticks.

    `recomputed` are the forwards that have begun, by stage and micro-batch, of which the activation is to be recomputed
    so; a forward keeps what its backward needs, or not, from its beginning on. Whether it is offloaded is open until
    that begins.
    """

    now: int
    ran: Mapping[Task, Ran]
    recomputed: Mapping[tuple[int, int], PassKind] = field(default_factory=dict)

    def finer(self, parts: int) -> State:
        """The same where every tick is `parts` ticks."""
        ran = {task: Ran(one.start * parts, one.end * parts) for task, one in self.ran.items()}
        return State(self.now * parts, ran, self.recomputed)

    def opening(self, problem: Problem, device: int) -> int | None:
        """When the first task of a device started; None where none has."""
        return min((one.start for task, one in self.ran.items() if problem.device(task.of) == device), default=None)

    def passes(self, problem: Problem) -> frozenset[Pass]:
        """The passes that have begun or may still run: those of both modes where a backward has not begun."""
        begun = {task.of for task in self.ran}
        over = {p._replace(kind=kind) for p in begun if p.kind is BW for kind in (B, W)}
        over |= {p._replace(kind=BW) for p in begun if p.kind is B}
        for (stage, j), ways in self.ways_to_save(problem).items():
            saving = frozenset(problem.stages[stage].saving_kinds).difference(*ways)
            over |= {Pass(kind, stage, j) for kind in saving}
        network = problem.network
        return frozenset(Pass(*of, j) for of in network.tasks for j in network.numbers[of]) - over

    def ways_to_save(self, problem: Problem) -> dict[tuple[int, int], tuple[frozenset[PassKind], ...]]:
        """Of each activation, by stage and micro-batch, what may still run to hold less of it, one of these sets."""
        begun: dict[tuple[int, int], set[PassKind]] = {where: {way} for where, way in self.recomputed.items()}
        for task in self.ran:
            begun.setdefault(task.of[1:], set()).add(task.of.kind)
        found = {}
        for stage, options in problem.network.options.items():
            for j in problem.microbatches_of[stage]:
                own = begun.get((stage, j), set())
                saving = own.intersection(problem.stages[stage].saving_kinds)
                if own & {B, BW}:
                    options_left = [option for option in options if option == saving]
                elif saving:
                    options_left = [option for option in options if option >= saving]
                else:
                    options_left = [option for option in options if F not in own or not option & set(RECOMPUTATIONS)]
                found[stage, j] = tuple(options_left)
        return found
