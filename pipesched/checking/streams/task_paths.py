"""The tasks of one micro-batch on its chain, and the predecessors of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem


class Node(NamedTuple):
    """A task by its number in the pass; what sends a tensor on is the last one."""

    kind: PassKind
    stage: int
    number: int


class Needed(NamedTuple):
    """A task starts so long after the end of this one."""

    task: Node
    lag: int


class TaskPaths:
    """`ticks` and `where` (device and stream) by task, `needs` what each waits for; first to last.

    Backwards that may be split are.
    """

    def __init__(self, problem: Problem, chain: Sequence[int]) -> None:
        self.problem, self.splits = problem, problem.stages[chain[0]].weight is not None
        self.ticks: dict[Node, int] = {}
        self.where: dict[Node, tuple[int, str]] = {}
        self.needs: dict[Node, list[Needed]] = {}
        gradient = B if self.splits else BW
        sent: list[Needed] = []
        for at, stage in enumerate(chain):
            to = chain[at + 1 : at + 2]
            sent = [Needed(self._pass(F, stage, sent, to), self._lag(stage, to))]
        sent = []
        for at in reversed(range(len(chain))):
            stage, to = chain[at], chain[at - 1 : at] if at else []
            arrived = self._pass(gradient, stage, [Needed(self._last(F, stage), 0), *sent], to)
            sent = [Needed(arrived, self._lag(stage, to))]
            for number, task in enumerate(problem.stages[stage].tasks_of(W) if self.splits else ()):
                of = self._last(B, stage) if task.after is None else Node(B, stage, task.after)
                self._add(Node(W, stage, number), task.ticks, task.stream, [Needed(of, 0)])

    def _pass(self, kind: PassKind, stage: int, needs: list[Needed], to: Sequence[int]) -> Node:
        """Its tasks one after the other; what the tensor's receiver waits for."""
        tasks = [(task.ticks, task.stream) for task in self.problem.stages[stage].tasks_of(kind)]
        lag = self.problem.lag(stage, to[0]) if to else 0
        if lag and self.problem.resources.transfer_stream is not None:
            tasks.append((lag, self.problem.resources.transfer_stream))
        for number, (ticks, stream) in enumerate(tasks):
            before = [Needed(Node(kind, stage, number - 1), 0)] if number else needs
            self._add(Node(kind, stage, number), ticks, stream, before)
        return Node(kind, stage, len(tasks) - 1)

    def _add(self, node: Node, ticks: int, stream: str, needs: list[Needed]) -> None:
        self.ticks[node], self.needs[node] = ticks, needs
        self.where[node] = self.problem.placement.stage_device[node.stage], stream

    def _last(self, kind: PassKind, stage: int) -> Node:
        """The task with which a pass has ended, before anything is sent."""
        return Node(kind, stage, len(self.problem.stages[stage].tasks_of(kind)) - 1)

    def _lag(self, stage: int, to: Sequence[int]) -> int:
        """Lag from the end of the last task of a pass, or of the sending one, until its tensor has arrived."""
        return self.problem.lag(stage, to[0]) if to and self.problem.resources.transfer_stream is None else 0
