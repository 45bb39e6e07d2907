"""Stream memory: until memory is freed, only a limited number of a device's forwards can have begun.

At any time h the passes of a device that have begun use no more than its memory plus what may have been freed by then.
That limits the work of forwards that run before h; of other tasks only those can have run whose head is below h. All
other work of the stream runs after h, one task at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import Resource, TaskType
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, TickArray, Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import StreamMemory
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.idle_time.knapsack import most_value
from solver.bounds.analytic.stream_chains import StreamChains, TimesByTask, stream_chains
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class StreamMemoryParams:
    """Resolution of the stream memory bound."""

    most_tails: int = tuned(64, "different tails tried as the least one of a set of tasks", 2, 10_000)


_PARAMS = StreamMemoryParams()


class _Found(NamedTuple):
    """After time `head` tasks of `work` ticks run on a stream, and `tail` ticks follow them.

    Before `head` at most `forwards` ticks of the stream's forwards can have begun.
    """

    head: Ticks
    work: Ticks
    tail: Ticks
    forwards: Ticks

    @property
    def value(self) -> Ticks:
        return self.head + self.work + self.tail


def stream_memory(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each stream with forwards, on a device with limited memory, the bound by forwards that memory delays.

    Until memory is freed, only some of the forwards can have begun, so all others run after that. The bound is the
    strongest over the times considered and, for the span, over the spans of all devices. Empty where `stream_chains`
    does not cover the problem.
    """
    limited = {device for device, room in enumerate(problem.room) if room is not None}
    chains = stream_chains(problem) if limited else None
    if chains is None:
        return []
    problem = chains.problem
    strongest: dict[Resource, tuple[_Found, int | None]] = {}
    for whose in range(problem.devices) if objective.by_device else [None]:
        heads, tails = chains.heads(whose), chains.tails(whose)
        freed_memory = {device: _FreedMemory(problem, chains, heads, device) for device in limited}
        for where, tasks in chains.on.items():
            if where.device not in limited or all(task.kind is not F for task in tasks):
                continue
            found = _strongest(chains, tasks, heads, tails, freed_memory[where.device])
            if found is not None and (where not in strongest or found.value > strongest[where][0].value):
                strongest[where] = found, whose
    return [_certificate(problem, where, *found) for where, found in strongest.items()]


class _FreedMemory:
    """Memory that passes of a device free, by the earliest times (ascending, in ticks) at which they may."""

    def __init__(self, problem: Problem, chains: StreamChains, heads: TimesByTask, device: DeviceId) -> None:
        network = problem.network
        self._problem, self._device = problem, device
        times, amounts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for (kind, stage), change in network.change.items():
            ends = [TaskType(kind, stage, part) for part in network.ends[kind, stage]]
            if problem.placement.stage_device[stage] != device or ends[0] not in chains.ticks:
                continue
            count = len(problem.microbatches_of[stage])
            known = [starts + chains.ticks[end] for end in ends if (starts := heads[end]) is not None]
            times.append(np.maximum.reduce([np.full(count, -1, np.int64), *known]))
            amounts.append(np.full(count, max(0, -change.at_start) + max(0, -change.at_end), np.int64))
        order = np.argsort(np.concatenate(times), kind="stable")
        self.times, self._total = np.concatenate(times)[order], np.cumsum(np.concatenate(amounts)[order])

    def most_forwards(self, chains: StreamChains, tasks: Sequence[TaskType], at: TickArray) -> TickArray:
        """Return for each time of `at` the most ticks of a stream's forwards that memory lets begin before it.

        They must fit into the device's memory and all that may have been freed by then. `tasks` are the types of tasks
        of the stream.
        """
        problem, work = self._problem, dict[int, int]()
        for task in tasks:
            if task.kind is F:
                work[task.stage] = work.get(task.stage, 0) + chains.ticks[task]
        room, memory_in_flight = problem.room[self._device], problem.network.memory_in_flight
        assert room is not None
        items = [(ticks, memory_in_flight[stage], len(problem.microbatches_of[stage])) for stage, ticks in work.items()]
        before = np.searchsorted(self.times, at, side="left")
        totals = np.concatenate([np.zeros(1, np.int64), self._total])[before]
        most = {total: most_value(items, room + total) for total in set(totals.tolist())}
        return np.array([most[total] for total in totals.tolist()], np.int64)


def _strongest(
    chains: StreamChains, tasks: Sequence[TaskType], heads: TimesByTask, tails: TimesByTask, freed_memory: _FreedMemory
) -> _Found | None:
    """Return the instant (`head`), and the least tail of the tasks that run after it, that give the highest bound.

    `tasks` are the types of tasks of a stream, `heads` and `tails` the least ticks before and after them. None if no
    work is certain to run after any instant.
    """
    forward = _Tasks(chains, [task for task in tasks if task.kind is F], heads, tails)
    other = _Tasks(chains, [task for task in tasks if task.kind is not F], heads, tails)
    at = np.unique(np.concatenate([forward.heads, other.heads, freed_memory.times]))
    at = at[at >= 0]
    if not len(at):
        return None
    most = freed_memory.most_forwards(chains, tasks, at)
    levels = np.unique(np.concatenate([forward.tails, other.tails]))
    if len(levels) > _PARAMS.most_tails:
        levels = levels[np.linspace(0, len(levels) - 1, _PARAMS.most_tails).astype(np.int64)]
    best: _Found | None = None
    for level in levels:
        later = np.maximum(forward.work(level) - most, forward.work_from(at, level))
        work = later + other.work_from(at, level)
        n = int(np.argmax(np.where(work > 0, at + work, -1)))
        found = _Found(int(at[n]), int(work[n]), int(level), int(most[n]))
        if work[n] > 0 and (best is None or found.value > best.value):
            best = found
    return best


class _Tasks:
    """Tasks of a stream, one entry for each micro-batch.

    They are arrays of heads, tails and durations, in ascending order of heads. A task that no path reaches has head -1;
    one from which no path leads to the end that counts is left out.
    """

    def __init__(self, chains: StreamChains, tasks: Sequence[TaskType], heads: TimesByTask, tails: TimesByTask) -> None:
        known = [(t, h, q) for t in tasks if (q := tails[t]) is not None and (h := _or_none(heads[t], q)) is not None]
        empty = np.zeros(0, np.int64)
        self.heads, self.tails = (np.concatenate([empty, *(entry[n] for entry in known)]) for n in (1, 2))
        ticks = [np.full(len(h), chains.ticks[t], np.int64) for t, h, _ in known]
        self._ticks = np.concatenate([empty, *ticks])
        order = np.argsort(self.heads, kind="stable")
        self.heads, self.tails, self._ticks = self.heads[order], self.tails[order], self._ticks[order]

    def work(self, tail: Ticks) -> Ticks:
        """Return the total ticks of the tasks whose tail is at least `tail`."""
        return int(self._ticks[self.tails >= tail].sum())

    def work_from(self, at: TickArray, tail: Ticks) -> TickArray:
        """Return for each time of `at` the total ticks of tasks with at least that head, and at least this tail."""
        inside = np.where(self.tails >= tail, self._ticks, 0)
        left = np.concatenate([np.cumsum(inside[::-1])[::-1], np.zeros(1, np.int64)])
        return left[np.searchsorted(self.heads, at, side="left")]


def _or_none(head: TickArray | None, tail: TickArray) -> TickArray:
    """Return the heads of a type of task; -1 for each micro-batch, as many as `tail` has, where `head` is None."""
    return np.full(len(tail), -1, np.int64) if head is None else head


def _certificate(problem: Problem, where: Resource, found: _Found, whose: DeviceId | None) -> Certificate:
    evidence = StreamMemory(*where, whose, problem.tick, found.head, found.tail)
    since, until = "", "the end of all"
    if whose is not None:
        since, until = f" after device {whose} began", f"the end of what device {whose} runs"
    text = (
        f"What the memory of device {where.device} holds, with what may have been given back by "
        f"{amount(problem, found.head)}{since}, lets forwards run {amount(problem, found.forwards)} of stream "
        f"{where.stream} before that. With what cannot begin before either, {amount(problem, found.work)} of its tasks "
        f"run later, one at a time, and after the last of them {amount(problem, found.tail)} or more are left to "
        f"{until}: {amount(problem, found.value)}."
    )
    return Certificate("stream memory", found.value, text, where.device, evidence)


BOUNDS.register(Bound("stream memory", stream_memory, several_streams=True, reads_memory=True))
