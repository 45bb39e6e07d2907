"""Waiting weight tasks: after the last backward of a device, memory limits how many weight tasks can be left.

From its backward to the end of its weight tasks an activation is on its device, even if it was offloaded or recomputed
before. So when all backwards of a device have ended that have at least a given tail, no more weight tasks are left than
its memory has activations. All others have run before, one task at a time on their stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import Mode, Resource, TaskType
from pipesched.problem.passes import B, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, StageId, TickArray, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import StreamWeights
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.idle_time.knapsack import most_value
from solver.bounds.analytic.stream_chains import StreamChains, TimesByTask, stream_chains
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class StreamWeightsParams:
    """Resolution of the bound by waiting weight tasks."""

    levels: int = tuned(3, "smallest heads and largest tails tried, in all pairs", 1, 100)


_PARAMS = StreamWeightsParams()


# The name of its certificates.
NAME = "waiting weight tasks"


class _Found(NamedTuple):
    """Tasks of a stream that begin after `head` and take `work` ticks in all, before the last `tail` ticks.

    At most `waiting` ticks of weight tasks can be left when the last `tail` ticks begin; they are not in `work`.
    """

    head: Ticks
    work: Ticks
    tail: Ticks
    waiting: Ticks

    @property
    def value(self) -> Ticks:
        return self.head + self.work + self.tail


def stream_weights(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each stream with weight tasks, on a device with limited memory, its strongest bound, if one was found.

    It is by the weight tasks that wait. Memory limits how many of them can be left when the last backwards have ended;
    all other work has run before. For the span it is the strongest over all devices' spans. Empty where backwards are
    never split, or `stream_chains` does not cover the problem.
    """
    limited = {device for device, room in enumerate(problem.room) if room is not None}
    chains = stream_chains(problem) if limited and Mode.SPLIT in problem.network.modes else None
    if chains is None:
        return []
    problem = chains.problem
    strongest: dict[Resource, tuple[_Found, int | None]] = {}
    for whose in range(problem.devices) if objective.by_device else [None]:
        heads, tails = chains.heads(whose), chains.tails(whose)
        for where, tasks in chains.on.items():
            if where.device in limited and any(task.kind is W for task in tasks):
                known = strongest[where][0].value if where in strongest else 0
                found = _Stream(problem, chains, where, heads, tails).strongest(known)
                if found is not None:
                    strongest[where] = found, whose
    return [_certificate(problem, where, *found) for where, found in strongest.items()]


class _Stream:
    """The types of tasks on a stream with their heads and tails, and the memory that each stage's weight tasks occupy.

    `strongest` returns the highest bound from the work that is certain to run between a head and a tail.
    """

    def __init__(
        self, problem: Problem, chains: StreamChains, where: Resource, heads: TimesByTask, tails: TimesByTask
    ) -> None:
        self._ticks, self._heads, self._tails = chains.ticks, heads, tails
        self._tasks = chains.on[where]
        self._weights: dict[int, list[TaskType]] = {}
        for task in self._tasks:
            if task.kind is W:
                self._weights.setdefault(task.stage, []).append(task)
        network = problem.network
        self._ends = {s: [TaskType(B, s, part) for part in network.ends[B, s]] for s in self._weights}
        self._memory = {s: -network.change[W, s].total for s in self._weights}
        self._count = {s: len(problem.microbatches_of[s]) for s in self._weights}
        room = problem.room[where.device]
        assert room is not None
        self._room = room

    def strongest(self, known: Ticks) -> _Found | None:
        """Return the head and tail, of a few tried, with the highest bound; None if none is above `known` ticks."""
        heads = self._levels(self._heads, slice(None, 1))[: _PARAMS.levels]
        best = None
        for head, tail in product(heads, self._levels(self._tails, slice(-_PARAMS.levels, None))):
            found = self._between(head, tail, known)
            if found is not None and found.value > known:
                best, known = found, found.value
        return best

    def _levels(self, times: TimesByTask, which: slice) -> Sequence[Ticks]:
        known = [of_task[which] for task in self._tasks if (of_task := times[task]) is not None]
        return [] if not known else sorted(set(np.concatenate(known).tolist()))

    def _between(self, head: Ticks, tail: Ticks, known: Ticks) -> _Found | None:
        """Return the work certain to run between `head` and the instant `tail` ticks before the end.

        None if there is none, or if its bound cannot be above `known`.
        """
        others = sum(self._inside(task, head, tail) * self._ticks[task] for task in self._tasks if task.kind is not W)
        items = []
        for stage, tasks in self._weights.items():
            ended = min(self._after(self._tails[end], tail) for end in self._ends[stage])
            early = max(self._before(self._heads[task], stage, head) for task in tasks)
            ticks = sum(self._ticks[task] for task in tasks)
            items.append((ticks, self._memory[stage], max(0, ended - early)))
        whole = sum(ticks * count for ticks, _, count in items)
        if head + others + whole + tail <= known:
            return None
        waiting = most_value(items, self._room)
        sure = sum(self._inside(task, head, tail) * self._ticks[task] for own in self._weights.values() for task in own)
        work = others + max(sure, whole - waiting)
        return _Found(head, work, tail, waiting) if work > 0 else None

    def _inside(self, task: TaskType, head: Ticks, tail: Ticks) -> int:
        """Return the number of micro-batches whose task of this type has at least this head and at least this tail."""
        begin, left = self._heads[task], self._tails[task]
        return 0 if begin is None or left is None else int(((begin >= head) & (left >= tail)).sum())

    def _before(self, begin: TickArray | None, stage: StageId, head: Ticks) -> int:
        return self._count[stage] if begin is None else int((begin < head).sum())

    def _after(self, left: TickArray | None, tail: Ticks) -> int:
        return 0 if left is None else int((left >= tail).sum())


def _certificate(problem: Problem, where: Resource, found: _Found, whose: DeviceId | None) -> Certificate:
    evidence = StreamWeights(*where, whose, problem.tick, found.head, found.tail)
    since, until = "", "the end of all"
    if whose is not None:
        since, until = f" after device {whose} began", f"the end of what device {whose} runs"
    text = (
        f"When {amount(problem, found.tail)} are left to {until}, the memory of device {where.device} holds weight "
        f"tasks that wait for {amount(problem, found.waiting)} of stream {where.stream} at most. All others behind "
        f"backwards that have ended by then have run. With what else leaves as much they take "
        f"{amount(problem, found.work)}, one at a time, not before {amount(problem, found.head)}{since}: "
        f"{amount(problem, found.value)}."
    )
    return Certificate(NAME, found.value, text, where.device, evidence)


BOUNDS.register(Bound(NAME, stream_weights, several_streams=True, reads_memory=True))
