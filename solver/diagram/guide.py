"""What remains after the steps of some stages, looked up for orders of the steps of these or of more stages.

An order of the steps of more stages has an order of the steps of fewer of them in it. What remains after that one
remains after the whole order: its micro-batches have come so far on the fewer stages, and what has passed on their way
since is taken from their times. A pass backwards over many stages has millions of states; one over few of them leaves
out nearly as many labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.compiled import inner
from pipesched.problem.problem import Problem
from solver.diagram.completion import NOTHING, Rests, Short
from solver.diagram.steps import Kept, Numbers, devices_of


class Guide(NamedTuple):
    """The states of fewer stages with what remains after each, and where they are found from those of more stages.

    By steps done of more stages: how many of these are steps of the fewer ones (`passed`), and how long after the last
    of those the last step of a micro-batch alone ends (`behind`). By steps done of the fewer: their part of a `key`.
    `times` are the places, behind the micro-batches, of the times of more stages for those of devices of the fewer.
    What remains is added to times that are less by `later` than those of more stages. States of layer n, `done` n
    steps, are those from `since[n]` to before `since[n + 1]`; a guide without layers says nothing.
    """

    passed: Numbers
    behind: Numbers
    key: Numbers
    times: Numbers
    steps: int
    in_flight: int
    later: int
    since: Numbers
    keys: Numbers
    rests: Short


def no_guide() -> Guide:
    """What says nothing of any order."""
    none = np.empty(0, np.int64)
    return Guide(none, none, none, none, 0, 0, 0, np.zeros(1, np.int64), none, np.empty((0, 0), np.int32))


def guide_of(problem: Problem, kept: Kept, fewer: Kept, rest: list[Rests]) -> Guide:
    """The guide by what remains after each state of the same or fewer stages of those that are kept."""
    stages, few, steps = kept.stages, fewer.stages, kept.steps
    within = np.array([stage in few for stage in (*stages, *reversed(stages))])
    ends, at = kept.ends, stages.index(few[0])
    last = np.maximum.accumulate(np.where(within, ends, 0))
    first = int(steps.lag[at] + (ends[at - 1] if at else 0))
    return Guide(
        passed=np.append(0, np.cumsum(within)),
        behind=np.append(0, np.where(np.cumsum(within) > 0, ends - last, 0)),
        key=np.append(np.cumsum(np.append(0, fewer.steps.place[1:])), 0),
        times=_times(problem, kept, fewer),
        steps=len(fewer.steps.ticks),
        in_flight=fewer.steps.in_flight,
        later=first + kept.beside - fewer.beside,
        since=np.append(0, np.cumsum([len(layer.keys) for layer in rest])),
        keys=np.concatenate([layer.keys for layer in rest]),
        rests=np.concatenate([layer.rests for layer in rest]),
    )


def _times(problem: Problem, kept: Kept, fewer: Kept) -> Numbers:
    """Places of the times of the fewer stages' devices among those of all: when each can start, when it has run all.

    The latter only where both have the same stages of the device; else it can start no later than it has run all.
    """
    where, own, few = problem.placement.stage_device, _devices(problem, kept), _devices(problem, fewer)
    free = [own.index(one) for one in few]
    same = [all(stage in fewer.stages for stage in kept.stages if where[stage] == one) for one in few]
    return np.array([*free, *(n + len(own) if alike else n for n, alike in zip(free, same, strict=True))], np.int64)


def _devices(problem: Problem, kept: Kept) -> tuple[int | None, ...]:
    own = devices_of(problem, kept.stages)
    return own if len(own) == len(kept.steps.room) else (None, *own)


@inner
def look_ahead(follows: Numbers, at: Numbers, flying: int, begun: int, guide: Guide, most: int) -> bool:
    """Fill in what follows each time of a label whose micro-batches in flight have done so many steps.

    False where the guide has no such state: on its stages no order that memory admits comes there and to an end.
    Nothing follows without a guide, and where the fewer stages have run all: then a later step of others may have
    started after the end that is counted.
    """
    for time in range(len(follows)):
        follows[time] = NOTHING
    if len(guide.since) < 2:
        return True
    key, done, first, behind = 0, (begun - flying) * guide.steps, 0, 0
    for one in range(flying):
        passed = guide.passed[at[one]]
        key, done = key + guide.key[passed], done + passed
        if passed == guide.steps:
            first = one + 1
        if passed > 0:
            behind = one + 1
    if done == len(guide.since) - 2:
        return True
    low, high = guide.since[done], guide.since[done + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if guide.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low == end or guide.keys[low] != key:
        return False
    for one in range(first, behind):
        follows[one] = guide.rests[low, one - first] - guide.behind[at[one]] - guide.later
    for number in range(len(guide.times)):
        time = most + guide.times[number]
        follows[time] = max(follows[time], guide.rests[low, guide.in_flight + number] - guide.later)
    return True
