"""What completion bounds of some stages say of labels of the same or of more stages.

In an order of the steps of some stages there is an order of the steps of any fewer of them. What that takes at least
from where it has come, by any of its ways to go on, the whole order takes too. A micro-batch has gone on since its last
step of the fewer stages: it comes to the next of them as if that step had ended when it must have, had the micro-batch
come to where it is now without a wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pipesched.checking.diagram.completion import Rest
from pipesched.checking.diagram.moves import Labels, waiting
from pipesched.checking.diagram.walk import NONE, Numbers, Steps, Walk
from pipesched.compiled import compiled, inner

Stay = np.ndarray[Any, np.dtype[np.bool_]]


class Guide(NamedTuple):
    """Completion bounds of fewer stages, and how they are read by labels of more.

    `own` are their steps among those of more stages, which add `weights` to a key, `number` how often each runs, and
    `ending` those without which their order isn't over. By step of more stages: the `first` and `last` of the fewer in
    its chain, -1 for none, the `column` of these, and the time from the end of the last of them before it to the end of
    the step before it, `alone`. `free` is the column of their first device, `columns` those of more stages for each of
    their times of devices. Those with n steps run have keys from `since[n]` on, and each has rows from `at` on.
    """

    own: Numbers
    weights: Numbers
    ending: Numbers
    first: Numbers
    last: Numbers
    column: Numbers
    alone: Numbers
    free: int
    columns: Numbers
    since: Numbers
    keys: Numbers
    at: Numbers
    rows: Labels


def guide_of(walk: Walk, fewer: Walk, layers: Sequence[Rest]) -> Guide:
    """Of the layers of a walk along fewer stages, for labels of a walk along more."""
    steps, count = walk.steps, len(walk.stages)
    own = np.array([n for n, stage in enumerate(walk.stages) if stage in fewer.stages], np.int64)
    first, last, column, alone = (np.full(count, NONE, np.int64) for _ in range(4))
    for n in range(count):
        of_chain = np.flatnonzero(steps.first[own] == steps.first[n])
        if len(of_chain):
            first[n], last[n], column[n] = *own[of_chain[[0, -1]]], fewer.steps.column[of_chain[0]]
            before = own[of_chain][own[of_chain] < n]
            alone[n] = walk.ends[n - 1] - walk.ends[before[-1]] if len(before) else 0
    rows = np.concatenate([np.diff(one.at) for one in layers])
    return Guide(
        own=own,
        weights=fewer.steps.weights,
        ending=own[[fewer.steps.owner in (NONE, one) for one in fewer.steps.device]],
        first=first,
        last=last,
        column=column,
        alone=alone,
        free=fewer.steps.columns,
        columns=_columns(walk, fewer),
        since=np.append(0, np.cumsum([len(one.keys) for one in layers])),
        keys=np.concatenate([one.keys for one in layers]),
        at=np.append(0, np.cumsum(rows)),
        rows=np.concatenate([one.rows for one in layers]),
    )


def _columns(walk: Walk, fewer: Walk) -> Numbers:
    """For when each device of the fewer stages can start, and for when it has run all, the times of more stages.

    If other stages of the device are among these, what they would still run is not what the fewer would: then, that it
    can start no later.
    """
    free = [walk.steps.columns + walk.devices.index(one) for one in fewer.devices]
    others = {walk.steps.device[n] for n, stage in enumerate(walk.stages) if stage not in fewer.stages}
    over = [one if one - walk.steps.columns in others else one + len(walk.devices) for one in free]
    return np.array(free + over, np.int64)


def no_guide() -> Guide:
    """One that says nothing."""
    none = np.zeros(0, np.int64)
    return Guide(none, none, none, none, none, none, none, 0, none, none, none, none, np.zeros((0, 0), np.int32))


@compiled
def look_ahead(run: Numbers, looks: Numbers, count: int, steps: Steps, guide: Guide) -> tuple[int, int, int]:
    """From which row of the guide to which a state has its own, and how many of a label's times these speak of.

    There is none where no order of the fewer stages comes so far, and to an end; -1 where they have run all. The first
    two `looks` are of the `count` micro-batches under way, the others are filled in: a time's column, that of what
    follows it, and what to take away.
    """
    left, key, done, found = False, np.int64(0), np.int64(0), 0
    for n in guide.ending:
        left = left or run[n] < steps.number[n]
    if not left:
        return -1, -1, 0
    for place, n in enumerate(guide.own):
        key += guide.weights[place] * run[n]
        done += run[n]
    first, last = (guide.since[done], guide.since[done + 1]) if done + 1 < len(guide.since) else (0, 0)
    state = first + np.searchsorted(guide.keys[first:last], key)
    if state == last or guide.keys[state] != key:
        return 0, 0, 0
    for which in range(count):
        column, n = looks[0, which], looks[1, which]
        if guide.first[n] >= 0:
            number, back = column - steps.column[n] + run[steps.last[n]], run[guide.last[n]]
            if back <= number < run[guide.first[n]]:
                looks[2, found], looks[3, found], looks[4, found] = (
                    column,
                    guide.column[n] + number - back,
                    guide.alone[n],
                )
                found += 1
    for number, column in enumerate(guide.columns):
        looks[2, found], looks[3, found], looks[4, found] = column, guide.free + number, 0
        found += 1
    return guide.at[state], guide.at[state + 1], found


@compiled
def ask(
    run: Numbers, at: Numbers, order: Numbers, labels: Labels, stay: Stay, below: int, steps: Steps, guide: Guide
) -> None:
    """Of states and their labels, numbers `order[at[n]:at[n + 1]]`: those stay that have a way to end below."""
    looks = np.empty((5, labels.shape[1]), np.int64)
    for one in range(len(run)):
        count = waiting(run[one], looks[0], looks[1], steps)
        since, until, count = look_ahead(run[one], looks, count, steps, guide)
        for which in order[at[one] : at[one + 1]]:
            if since >= 0 and stay[which]:
                stay[which] = _has_a_way_on(labels[which], looks, count, guide.rows, since, until, below)


@inner
def _has_a_way_on(label: Labels, looks: Numbers, count: int, rows: Labels, since: int, until: int, below: int) -> bool:
    for row in range(since, until):
        late = False
        for n in range(count):
            if label[looks[2, n]] + rows[row, looks[3, n]] - looks[4, n] >= below:
                late = True
                break
        if not late:
            return True
    return False
