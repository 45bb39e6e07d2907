"""Heads and tails of some of a stream's tasks: none begins before, all take so long, and so much is left after them.

Jackson's preemptive schedule of one machine with heads and tails (Carlier, European Journal of Operational Research 11,
1982), with heads and tails along chains of tasks. Micro-batches of a chain are alike: the k-th start of a type of task
is no sooner than the k-th of each type that it waits for, nor than k times its own length after the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.formatting import amount
from pipesched.problem.mode_gains import fused_is_never_better
from pipesched.problem.network.task_network import Resource, TaskType
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import StreamTasks
from solver.bounds.analytic.catalogue import BOUNDS, Bound

# Of each type of task, the ticks of each of its micro-batches in the order of their starts; None where there is no way.
_Ways = Mapping[TaskType, NDArray[np.int64] | None]
# So many different tails are tried as the least tail of a set of tasks.
_TAILS = 64
# Times whose sums might not fit are left to other bounds.
_MOST = 2**60


class _Found(NamedTuple):
    """A set of tasks of a stream: `head` and `tail` of each are at least so long, and they take `work` together."""

    head: int
    work: int
    tail: int
    tasks: int

    @property
    def value(self) -> int:
        return self.head + self.work + self.tail


def stream_heads_and_tails(problem: Problem, objective: Objective) -> list[Certificate]:
    """For each stream the strongest of all devices' spans; nothing where a backward may gain by being fused."""
    if problem.network.one_task_each or problem.overlaps or problem.microbatch_scale:
        return []
    stages = range(problem.placement.stages)
    if problem.splittable and not all(fused_is_never_better(problem, s) for s in stages):
        return []
    chains = _Chains(problem)
    if chains.longest > _MOST:
        return []
    strongest: dict[Resource, tuple[_Found, int | None]] = {}
    for whose in [None] if objective is Objective.MAKESPAN else range(problem.devices):
        heads, tails = chains.heads(whose), chains.tails(whose)
        for where, tasks in chains.on.items():
            found = _strongest(chains, tasks, heads, tails)
            if found is not None and (where not in strongest or found.value > strongest[where][0].value):
                strongest[where] = found, whose
    return [_certificate(problem, where, *found) for where, found in strongest.items()]


def _strongest(chains: _Chains, tasks: Sequence[TaskType], heads: _Ways, tails: _Ways) -> _Found | None:
    """The set of a stream's tasks, by least head and least tail, that proves most."""
    known = [(t, h, q) for t in tasks if (h := heads[t]) is not None and (q := tails[t]) is not None]
    if not known:
        return None
    head, tail = (np.concatenate([ways[place] for ways in known]) for place in (1, 2))
    ticks = np.concatenate([np.full(len(h), chains.ticks[t], np.int64) for t, h, _ in known])
    order = np.argsort(-head, kind="stable")
    head, tail, ticks = head[order], tail[order], ticks[order]
    levels = np.unique(tail)
    if len(levels) > _TAILS:
        levels = levels[np.linspace(0, len(levels) - 1, _TAILS).astype(np.int64)]
    best: _Found | None = None
    for level in levels:
        inside = tail >= level
        work = np.cumsum(ticks[inside])
        at = int(np.argmax(head[inside] + work))
        found = _Found(int(head[inside][at]), int(work[at]), int(level), at + 1)
        if best is None or found.value > best.value:
            best = found
    return best


def _certificate(problem: Problem, where: Resource, found: _Found, whose: int | None) -> Certificate:
    evidence = StreamTasks(*where, whose, problem.tick, found.head, found.tail)
    since, until = "", "the end of all"
    if whose is not None:
        since, until = f" after device {whose} began", f"the end of what device {whose} runs"
    text = (
        f"On stream {where.stream} of device {where.device}, {found.tasks} tasks cannot begin before "
        f"{amount(problem, found.head)}{since}. They take {amount(problem, found.work)}, one at a time. After the last "
        f"of them, {amount(problem, found.tail)} or more are left to {until}: {amount(problem, found.value)}."
    )
    return Certificate("stream heads and tails", found.value, text, where.device, evidence)


class _Chains:
    """The types of task that run, with backwards split that may be, and what each waits for along its micro-batch."""

    def __init__(self, problem: Problem) -> None:
        kinds = (F, B, W) if problem.splittable else (F, BW)
        network, walked = problem.network, problem.microbatches_of
        self._device = problem.placement.stage_device
        self.ticks = {
            TaskType(*pass_type, part): task.ticks
            for pass_type, tasks in network.tasks.items()
            if pass_type[0] in kinds and walked[pass_type[1]]
            for part, task in enumerate(tasks)
        }
        self.on: dict[Resource, list[TaskType]] = {}
        for task in self.ticks:
            self.on.setdefault(network.tasks[task.pass_type][task.part].resource, []).append(task)
        self._before: dict[TaskType, list[tuple[TaskType, int]]] = {task: [] for task in self.ticks}
        self._after: dict[TaskType, list[tuple[TaskType, int]]] = {task: [] for task in self.ticks}
        for arc in network.arcs:
            if not all(before.kind in (F, B, W, BW) for before in arc.alternatives):
                continue  # what offloading and recomputation ask for besides
            for before in arc.alternatives if arc.after in self.ticks else ():
                if before in self.ticks:
                    self._before[arc.after].append((before, arc.lag))
                    self._after[before].append((arc.after, arc.lag))
        needs = {task: [before for before, _ in ways] for task, ways in self._before.items()}
        self._sequence = list(TopologicalSorter(needs).static_order())
        self._count = {task: len(walked[task.stage]) for task in self.ticks}
        lags = sum(arc.lag for arc in network.arcs)
        self.longest = sum(ticks * self._count[task] for task, ticks in self.ticks.items()) + lags

    def heads(self, whose: int | None) -> _Ways:
        """From time 0, or from the first start of a device, to the first, second, ... start of each type."""
        found: dict[TaskType, NDArray[np.int64] | None] = {}
        for task in self._sequence:
            before = ((found[other], self.ticks[other] + lag) for other, lag in self._before[task])
            ways = [way + between for way, between in before if way is not None]
            found[task] = self._in_turn(task, ways, whose)
        return found

    def tails(self, whose: int | None) -> _Ways:
        """From the first, second, ... end of each type to the end of all, or to that of what a device runs."""
        found: dict[TaskType, NDArray[np.int64] | None] = {}
        for task in reversed(self._sequence):
            ways = [
                (way + self.ticks[after] + lag)[::-1]
                for after, lag in self._after[task]
                if (way := found[after]) is not None
            ]
            turned = self._in_turn(task, ways, whose)
            found[task] = None if turned is None else turned[::-1]
        return found

    def _in_turn(self, task: TaskType, ways: list[NDArray[np.int64]], whose: int | None) -> NDArray[np.int64] | None:
        """The longest of the ways, each at least the task's own length past the one before it."""
        if whose in (None, self._device[task.stage]):
            ways = [*ways, np.zeros(self._count[task], np.int64)]
        if not ways:
            return None
        own = np.arange(self._count[task]) * self.ticks[task]
        longest: NDArray[np.int64] = np.maximum.accumulate(np.maximum.reduce(ways) - own) + own
        return longest


BOUNDS.register(Bound("stream heads and tails", stream_heads_and_tails, several_streams=True))
