"""Heads and tails of sets of tasks on a stream: least time before them, total work, and least time after them.

Jackson's preemptive schedule of one machine with heads and tails (Carlier, European Journal of Operational Research 11,
1982), with heads and tails along chains of tasks. Micro-batches of a chain are alike: the k-th start of a type of task
is no sooner than the k-th end of each type that it waits for, nor than k - 1 times its own length after the first.
Where that type is of another chain, with n micro-batches to m of this one, the k-th start is no sooner than its end
number kn/m, rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import Resource, TaskType
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.problem.relaxed.relaxations import ARCS_BETWEEN_CHAINS
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import StreamTasks
from solver.bounds.analytic.catalogue import BOUNDS, Bound
from solver.bounds.analytic.stream_chains import StreamChains, TimesByTask, stream_chains
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class StreamHeadsAndTailsParams:
    """Resolution of the bound by stream heads and tails."""

    most_tails: int = tuned(64, "different tails tried as the least one of a set of tasks", 2, 10_000)


_PARAMS = StreamHeadsAndTailsParams()


class _Found(NamedTuple):
    """A set of tasks on a stream, in ticks: at least `head` is before and `tail` after each; together they take `work`.

    `tasks` is their number.
    """

    head: Ticks
    work: Ticks
    tail: Ticks
    tasks: int

    @property
    def value(self) -> Ticks:
        return self.head + self.work + self.tail


def stream_heads_and_tails(problem: Problem, objective: Objective) -> list[Certificate]:
    """Return for each stream of each device the best bound found by a set of its tasks: least head + work + least tail.

    The head of a task is the least time from the beginning of the schedule to its start, its tail the least time from
    its end to the end of the schedule. For the span they are times from the first start and to the last end of a
    device, and the bound of a stream is the best over all devices. Values are in ticks. Empty where `stream_chains`
    does not cover the problem, as where each pass is one task.
    """
    chains = stream_chains(problem)
    if chains is None:
        return []
    strongest: dict[Resource, tuple[_Found, int | None]] = {}
    for whose in range(problem.devices) if objective.by_device else [None]:
        heads, tails = chains.heads(whose), chains.tails(whose)
        for where, tasks in chains.on.items():
            found = _strongest(chains, tasks, heads, tails)
            if found is not None and (where not in strongest or found.value > strongest[where][0].value):
                strongest[where] = found, whose
    return [_certificate(problem, where, *found) for where, found in strongest.items()]


def _strongest(
    chains: StreamChains, tasks: Sequence[TaskType], heads: TimesByTask, tails: TimesByTask
) -> _Found | None:
    """Return the set of a stream's tasks with the highest bound: all with at least a certain head and a certain tail.

    The bound in ticks is head + work of the set + tail. `heads` and `tails` have for each type of task the least ticks
    before the start and after the end of its first, second, ... micro-batch; of many different tails only some are
    tried. None if no task has both.
    """
    known = [(t, h, q) for t in tasks if (h := heads[t]) is not None and (q := tails[t]) is not None]
    if not known:
        return None
    head, tail = (np.concatenate([entry[place] for entry in known]) for place in (1, 2))
    ticks = np.concatenate([np.full(len(h), chains.ticks[t], np.int64) for t, h, _ in known])
    order = np.argsort(-head, kind="stable")
    head, tail, ticks = head[order], tail[order], ticks[order]
    levels = np.unique(tail)
    if len(levels) > _PARAMS.most_tails:
        levels = levels[np.linspace(0, len(levels) - 1, _PARAMS.most_tails).astype(np.int64)]
    best: _Found | None = None
    for level in levels:
        inside = tail >= level
        work = np.cumsum(ticks[inside])
        at = int(np.argmax(head[inside] + work))
        found = _Found(int(head[inside][at]), int(work[at]), int(level), at + 1)
        if best is None or found.value > best.value:
            best = found
    return best


def _certificate(problem: Problem, where: Resource, found: _Found, whose: DeviceId | None) -> Certificate:
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


BOUNDS.register(
    Bound(
        "stream heads and tails",
        stream_heads_and_tails,
        rank=3,
        several_streams=True,
        keeping=frozenset({ARCS_BETWEEN_CHAINS}),
    )
)
