"""Completion bounds from a diagram of fewer stages, applied to labels of a diagram of the same or more stages.

An order of the steps of some stages contains an order of the steps of any subset of them. The least remaining time of
the contained order, over all its continuations, is also needed by the whole order. A micro-batch has moved on since its
last step of the fewer stages: it reaches the next of them as if that step had ended at the latest time at which the
micro-batch could still be at its present place, without any wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipesched.checking.diagram.model import Labels, Layer, Numbers
from pipesched.checking.diagram.moves import waiting
from pipesched.checking.diagram.walk import NONE, Steps, Walk, weights_of
from pipesched.compiled import compiled, inner
from pipesched.int64_arrays import int64_array


class SmallerBounds(NamedTuple):
    """Completion bounds of fewer stages, and how they are read by labels of more.

    `places` are their steps among those of more stages, which add `weights` to a key, and `ending` those without which
    their order isn't over. By step of more stages: the `first` and `last` of the fewer in its chain, -1 for none, the
    `column` of these, and `alone` the time from the end of the last of them before it to that of the step before it.
    `free` is the column of their first device, `columns` those of more stages for each of their times of devices. The
    states with n steps run have the keys `keys[since[n]:since[n + 1]]`, the state with `keys[k]` the bounds
    `rows[at[k]:at[k + 1]]`, in ticks.
    """

    places: Numbers
    weights: Numbers
    ending: Numbers
    first: Numbers
    last: Numbers
    column: Numbers
    alone: Numbers
    columns: Numbers
    since: Numbers
    keys: Numbers
    at: Numbers
    rows: Labels
    free: int


def smaller_bounds(walk: Walk, fewer: Walk, layers: Sequence[Layer]) -> SmallerBounds:
    """Return the completion bounds of a walk along fewer stages, prepared for labels of the walk along more.

    The bounds are `layers`: `layers[n]` has those of the states in which the fewer stages have run n steps.
    """
    steps, count = walk.steps, len(walk.stages)
    places = np.flatnonzero(np.isin(walk.stages, fewer.stages))
    first, last, column, alone = np.full((4, count), NONE, np.int64)
    for n in range(count):
        of_chain = np.flatnonzero(steps.first[places] == steps.first[n])
        if len(of_chain):
            first[n], last[n], column[n] = *places[of_chain[[0, -1]]], fewer.steps.column[of_chain[0]]
        before = places[of_chain][places[of_chain] < n]
        if len(before):
            alone[n] = walk.ends[n - 1] - walk.ends[before[-1]]
    free = int64_array([steps.columns + walk.devices.index(one) for one in fewer.devices])
    # If more stages of a device are kept, what they would still run is not what the fewer would.
    others = steps.device[~np.isin(walk.stages, fewer.stages)]
    over = free + np.where(np.isin(free - steps.columns, others), 0, len(walk.devices))
    since = np.append(0, np.cumsum([len(one.keys) for one in layers]))
    at = np.append(0, np.cumsum(np.concatenate([np.diff(one.at) for one in layers])))
    by_layer = since, np.concatenate([one.keys for one in layers]), at, np.concatenate([one.labels for one in layers])
    columns, weights = np.concatenate([free, over]), weights_of(fewer.steps)
    ending = places[(fewer.steps.device == fewer.steps.owner) | (fewer.steps.owner == NONE)]
    return SmallerBounds(places, weights, ending, first, last, column, alone, columns, *by_layer, fewer.steps.columns)


@compiled
def clear_excluded(
    run: Numbers,
    at: Numbers,
    order: Numbers,
    labels: Labels,
    stay: Labels,
    threshold: int,
    steps: Steps,
    bounds: SmallerBounds,
) -> None:
    """Set `stay` to False for labels without a continuation before `threshold` ticks, by bounds of fewer stages.

    The labels of state n are `labels[order[at[n]:at[n + 1]]]`, and `stay` is by row of `labels`; `run` has by state and
    step how often the step has run. There is no continuation if no order of the fewer stages reaches the state and
    completes, or if with each row of its completion bounds some time of the label plus the remaining ticks reaches
    `threshold`. If the fewer stages' steps have all run, all labels stay.
    """
    looks = np.empty((5, labels.shape[1]), np.int64)
    for one in range(len(run)):
        left, key, done = False, np.int64(0), np.int64(0)
        for n in bounds.ending:
            left = left or run[one, n] < steps.number[n]
        for place, n in enumerate(bounds.places):
            key, done = key + bounds.weights[place] * run[one, n], done + run[one, n]
        if not left:
            continue
        since, until = (bounds.since[done], bounds.since[done + 1]) if done + 1 < len(bounds.since) else (0, 0)
        state = since + np.searchsorted(bounds.keys[since:until], key)
        rows = bounds.rows[:0]
        if state < until and bounds.keys[state] == key:
            rows = bounds.rows[bounds.at[state] : bounds.at[state + 1]]
        count = _limited_times(run[one], looks, steps, bounds)
        for which in order[at[one] : at[one + 1]]:
            stay[which] = stay[which] and _can_complete(labels[which], looks, count, rows, threshold)


@inner
def _limited_times(run: Numbers, looks: Numbers, steps: Steps, bounds: SmallerBounds) -> int:
    """Fill `looks` with the times of a label that a completion bound of fewer stages limits; return their number.

    For each there is a column of the label (row 2), the column of the bound's rows (row 3), and the ticks to subtract
    (row 4), which have passed since the micro-batch's last step of the fewer stages. `run` has by step how often it has
    run; rows 0 and 1 are working space.
    """
    found = 0
    for which in range(waiting(run, looks, steps)):
        place, n = looks[0, which], looks[1, which]
        if bounds.first[n] >= 0:
            number, back = place - steps.column[n] + run[steps.last[n]], run[bounds.last[n]]
            if back <= number < run[bounds.first[n]]:
                looks[2, found], looks[3, found] = place, bounds.column[n] + number - back
                looks[4, found] = bounds.alone[n]
                found += 1
    for number, place in enumerate(bounds.columns):
        looks[2, found], looks[3, found], looks[4, found] = place, bounds.free + number, 0
        found += 1
    return found


@inner
def _can_complete(label: Labels, looks: Numbers, count: int, rows: Labels, threshold: int) -> bool:
    for row in rows:
        late = False
        for n in range(count):
            if label[looks[2, n]] + row[looks[3, n]] - looks[4, n] >= threshold:
                late = True
                break
        if not late:
            return True
    return False
