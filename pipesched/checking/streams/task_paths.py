"""The tasks of one micro-batch on its chain, and the least ways to each and from each along them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem


class Node(NamedTuple):
    """A task by its number in the pass; what sends a tensor on is the last one."""

    kind: PassKind
    stage: int
    number: int


class Needed(NamedTuple):
    """A task starts so long after the end of one of these, whichever runs."""

    either: tuple[Node, ...]
    lag: int


class TaskPaths:
    """`ticks` and `where` (device and stream) by task, `needs` what each waits for; first to last."""

    def __init__(self, problem: Problem, chain: Sequence[int], fused: bool = True) -> None:
        """`fused` says whether backwards that may be split may also run in one go."""
        self.problem, self.splits = problem, problem.stages[chain[0]].weight is not None
        self.ticks: dict[Node, int] = {}
        self.where: dict[Node, tuple[int, str]] = {}
        self.needs: dict[Node, list[Needed]] = {}
        gradients = ((B, BW) if fused else (B,)) if self.splits else (BW,)
        self._modes = len(gradients)
        sent: tuple[tuple[Node, ...], int] = (), 0
        for at, stage in enumerate(chain):
            sent = (
                (self._pass(F, stage, [Needed(*sent)], chain[at + 1 : at + 2]),),
                self._lag(stage, chain[at + 1 : at + 2]),
            )
        sent = (), 0
        for at in reversed(range(len(chain))):
            stage, to = chain[at], chain[at - 1 : at] if at else []
            forward = Needed((self._last(F, stage),), 0)
            arrived = tuple(self._pass(kind, stage, [forward, Needed(*sent)], to) for kind in gradients)
            sent = arrived, self._lag(stage, to)
            for number, task in enumerate(problem.stages[stage].tasks_of(W) if self.splits else ()):
                of = self._last(B, stage) if task.after is None else Node(B, stage, task.after)
                self._add(Node(W, stage, number), task.ticks, task.stream, [Needed((of,), 0)])

    def _pass(self, kind: PassKind, stage: int, needs: list[Needed], to: Sequence[int]) -> Node:
        """Its tasks one after the other; what the tensor's receiver waits for."""
        tasks = [(task.ticks, task.stream) for task in self.problem.stages[stage].tasks_of(kind)]
        lag = self.problem.lag(stage, to[0]) if to else 0
        if lag and self.problem.transfer_stream is not None:
            tasks.append((lag, self.problem.transfer_stream))
        for number, (ticks, stream) in enumerate(tasks):
            before = [Needed((Node(kind, stage, number - 1),), 0)] if number else [one for one in needs if one.either]
            self._add(Node(kind, stage, number), ticks, stream, before)
        return Node(kind, stage, len(tasks) - 1)

    def _add(self, node: Node, ticks: int, stream: str, needs: list[Needed]) -> None:
        self.ticks[node], self.needs[node] = ticks, needs
        self.where[node] = self.problem.placement.stage_device[node.stage], stream

    def _last(self, kind: PassKind, stage: int) -> Node:
        """The task with which a pass has ended, before anything is sent."""
        return Node(kind, stage, len(self.problem.stages[stage].tasks_of(kind)) - 1)

    def _lag(self, stage: int, to: Sequence[int]) -> int:
        """What passes from the end of the last task of a pass, or of the one that sends, until its tensor is there."""
        return self.problem.lag(stage, to[0]) if to and self.problem.transfer_stream is None else 0

    def heads(self, owner: int | None) -> dict[Node, int | None]:
        """The least time to the start of each task since time 0, or since the owner's first start; None if no way."""
        found: dict[Node, int | None] = {}
        for node, needs in self.needs.items():
            ways = [0] if owner in (None, self.where[node][0]) else []
            for either, lag in needs:
                ends = [(found[one], self.ticks[one]) for one in either]
                known = [way + ticks for way, ticks in ends if way is not None]
                ways += [min(known) + lag] if len(known) == len(ends) else []
            found[node] = max(ways, default=None)
        return found

    def tails(self, owner: int | None) -> dict[Node, int | None]:
        """The least time from the end of each task until all is over, or what the owner runs."""
        found: dict[Node, int | None] = {}
        for node in reversed(self.needs):
            ways = [0] if owner in (None, self.where[node][0]) else []
            found[node] = max([*ways, *self._behind(node, found)], default=None)
        return found

    def _behind(self, node: Node, tails: dict[Node, int | None]) -> Iterator[int]:
        """What comes in any case; and of the modes of a backward the one that takes less, if both come."""
        modes: dict[PassKind, int] = {}
        for after, needs in self.needs.items():
            lags = [lag for either, lag in needs if node in either]
            tail = tails.get(after)
            if not lags or tail is None:
                continue
            way = max(lags) + self.ticks[after] + tail
            if after.kind is F or (node.kind is not F and node.stage == after.stage):
                yield way
            else:
                modes[after.kind] = max(way, modes.get(after.kind, 0))
        if len(modes) == self._modes:
            yield min(modes.values())
