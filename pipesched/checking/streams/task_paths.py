"""The tasks of one micro-batch on its chain, and the predecessors of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, TaskPart, Ticks


class Node(NamedTuple):
    """A task of one micro-batch, by kind of pass, stage and index in the pass.

    A task that sends the pass's tensor is the last.
    """

    kind: PassKind
    stage: StageId
    number: TaskPart


class Needed(NamedTuple):
    """A predecessor: a task starts at least `lag` ticks after the end of `task`."""

    task: Node
    lag: Ticks


class TaskPaths:
    """The tasks of one micro-batch on a chain, whose stages are given in order.

    By task, `ticks` has its duration, `where` its device and stream, and `needs` its predecessors; in all three a task
    is after its predecessors. `splits` is True if backwards are B and W, False if they are BW.
    """

    def __init__(self, problem: Problem, chain: Sequence[StageId]) -> None:
        self.problem, self.splits = problem, problem.stages[chain[0]].weight is not None
        self.ticks: dict[Node, Ticks] = {}
        self.where: dict[Node, tuple[DeviceId, str]] = {}
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

    def _pass(self, kind: PassKind, stage: StageId, needs: list[Needed], to: Sequence[StageId]) -> Node:
        """Add the tasks of a pass, one after the other, the first after `needs`.

        Returns the task that the tensor's receiver needs. A task that sends the tensor to stage `to` is added if
        transfers occupy a stream.
        """
        tasks = [(task.ticks, task.stream) for task in self.problem.stages[stage].tasks_of(kind)]
        lag = self.problem.lag(stage, to[0]) if to else 0
        if lag and self.problem.resources.transfer_stream is not None:
            tasks.append((lag, self.problem.resources.transfer_stream))
        for number, (ticks, stream) in enumerate(tasks):
            before = [Needed(Node(kind, stage, number - 1), 0)] if number else needs
            self._add(Node(kind, stage, number), ticks, stream, before)
        return Node(kind, stage, len(tasks) - 1)

    def _add(self, node: Node, ticks: Ticks, stream: str, needs: list[Needed]) -> None:
        self.ticks[node], self.needs[node] = ticks, needs
        self.where[node] = self.problem.placement.stage_device[node.stage], stream

    def _last(self, kind: PassKind, stage: StageId) -> Node:
        """Return the task with which a pass has ended, before its tensor is sent."""
        return Node(kind, stage, len(self.problem.stages[stage].tasks_of(kind)) - 1)

    def _lag(self, stage: StageId, to: Sequence[StageId]) -> Ticks:
        """Return the ticks from the end of a pass until its tensor arrives at stage `to`, if any.

        0 where a task sends it.
        """
        return self.problem.lag(stage, to[0]) if to and self.problem.resources.transfer_stream is None else 0
