"""What one device by itself says of orders on several: which of them leave it too much to do below a value.

To each device the others are time that passes. All of its orders are tried that may end below the value, and at each
point to which they come, numbers of times that have run, it is noted how much follows: from the end of the last step of
each micro-batch under way, from when the device can start, from when it would have run all, and from 0. Each way to go
on has such a row. A row is left out if the earliest times at the point end it at the value or later; of the others so
many are kept distinct, and near ones count as the least of them. An order on several devices need not be tried if its
times for one of them, with any row of that device at that point, come to the value: it has no way to end before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipesched.checking.crossing_chains.ways import NO_STEP, Ways
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.walk import Numbers
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled

# Ways to go on that are kept distinct at each point, and numbers of all rows, beyond which memory is too small.
_WAYS_ON, _MOST = 64, 40_000_000
_NO = -2
# What has run, the earliest times of it, and what may come, as `may_come` says.
Points = list[tuple[Numbers, Numbers, Numbers]]


class Rest(NamedTuple):
    """Points by key, and the rows of each, of which `many` count."""

    keys: Numbers
    rows: Numbers
    many: Numbers


class Alone(NamedTuple):
    """How times on several devices are read on one of them, the `number`th.

    By step of the several: what a run of it adds to the `key` there; `column`, where times of micro-batches that ran it
    last begin, -1 for none; the chain's `last` step there, and how much `longer` it takes from it than from a last own
    step. A row is so `wide`.
    """

    number: int
    key: Numbers
    column: Numbers
    last: Numbers
    longer: Numbers
    wide: int
    rest: Rest


def key_weights(ways: Ways) -> Numbers:
    """What each run of a step adds to the key of a point."""
    return np.array([(int(ways.number.max()) + 1) ** n for n in range(len(ways.number))], np.int64)


def alone_on(number: int, ways: Ways, own: Ways, points: Points, below: int) -> Alone:
    """What the device says, from its own ways and all points to which its orders come."""
    weights, count = key_weights(own), len(ways.ticks)
    on_it = [n for n in range(count) if ways.device[n] == number]
    key, column = np.zeros(count, np.int64), np.full(count, NO_STEP, np.int64)
    last, longer = np.zeros(count, np.int64), np.zeros(count, np.int64)
    key[on_it] = weights
    for n in range(count):
        before = [m for m in on_it if ways.final[m] == ways.final[n] and m <= n]
        behind = [m for m in on_it if ways.final[m] == ways.final[n] and m > n]
        if before and behind:
            last[n], column[n] = behind[-1], own.column[on_it.index(before[0])]
            longer[n] = ways.soonest[n + 1, number] - own.before[on_it.index(behind[0])]
    return Alone(number, key, column, last, longer, own.columns + 3, _rest(own, points, weights, below))


def _rest(ways: Ways, points: Points, weights: Numbers, below: int) -> Rest:
    """The rows of all points, the last of which is the end."""
    run, earliest, may = (np.concatenate([point[n] for point in points]) for n in range(3))
    order = np.argsort(run @ weights)
    run = run[order]
    wide = ways.columns + 3
    if (len(run) + 1) * _WAYS_ON * wide > _MOST:
        raise NotCoveredError("too many orders to try them all")
    keys = np.append(run @ weights, ways.number @ weights)
    rest = Rest(keys, np.zeros((len(keys), _WAYS_ON, wide), np.int64), np.zeros(len(keys), np.int64))
    rest.many[-1] = 1
    fill_in(rest, run, earliest[order], may[order], weights, ways, below)
    return rest


@compiled
def fill_in(
    rest: Rest, run: Numbers, earliest: Numbers, may: Numbers, weights: Numbers, ways: Ways, below: int
) -> None:
    """Write the rows of all points but the end, the last point first."""
    steps, wide = run.shape[1], rest.rows.shape[2]
    ways_on = np.empty((_WAYS_ON * steps * (steps + 1), wide), np.int64)
    for point in range(len(run) - 1, -1, -1):
        found = 0
        for n in range(steps):
            for g in range(-1, steps):
                if may[point, n] == _NO or (g >= 0 and (ways.together[n, g] < 0 or may[point, g] == _NO)):
                    continue
                key = rest.keys[point] + weights[n] + (weights[g] if g >= 0 else 0)
                then = np.searchsorted(rest.keys, key)
                if then == len(rest.keys) or rest.keys[then] != key:
                    continue
                for row in rest.rows[then, : rest.many[then]]:
                    _ahead(ways_on[found], row, n, g, run[point], may[point, n], ways)
                    in_time = ways.past + ways_on[found, wide - 1] < below
                    for place in range(wide - 1):
                        in_time = in_time and earliest[point, place] + ways_on[found, place] < below
                    found += in_time
        if found:
            counts, told = told_apart(ways_on[:found], np.arange(found), np.array([0, found]), _WAYS_ON)
            rest.rows[point, : counts[0]] = told
            rest.many[point] = counts[0]


@compiled
def _ahead(row: Numbers, then: Numbers, n: int, g: int, run: Numbers, may: int, ways: Ways) -> None:
    """The row with a step, or with a forward and a gradient as one, in front of what then follows."""
    free, done, zero = ways.columns, ways.columns + 1, ways.columns + 2
    takes = ways.ticks[n] if g < 0 else ways.together[n, g]
    everything = takes + (ways.after[n] if g < 0 else 0)
    from_end = max(then[free], then[done] + everything - takes)
    for step in (n, g):
        if step >= 0:
            from_end = max(from_end, ways.behind[step])
            if step != ways.final[step]:
                from_end = max(from_end, then[ways.column[step] + run[step] - run[ways.final[step]]])
    row[:] = 0
    row[zero] = then[zero]
    for start in range(len(run)):
        if ways.earlier[start] != NO_STEP:
            continue
        final = ways.final[start]
        leaves = 1 if final in (n, g) else 0
        for place in range(leaves, run[start] - run[final]):
            row[ways.column[start] + place] = then[ways.column[start] + place - leaves]
    row[free] = from_end + takes
    row[done] = everything + then[done]
    if may >= 0:
        row[done] = max(row[done], row[free] - may * ways.weight[0])
    for step in (n, g):
        if step >= 0 and ways.earlier[step] == NO_STEP:
            row[zero] = max(row[zero], ways.before[step] + row[free])
        elif step >= 0:
            row[ways.column[step] + run[step] - run[ways.final[step]]] = ways.before[step] + row[free]


@compiled
def has_a_way_on(
    run: Numbers, times: Numbers, ways: Ways, alone: Alone, below: int
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Of each order, whether the device has a row with which none of the times comes to the value."""
    free, devices, rest = ways.columns, len(ways.room), alone.rest
    found, own = np.zeros(len(run), np.bool_), np.zeros(alone.wide, np.int64)
    for one in range(len(run)):
        key = (run[one] * alone.key).sum()
        point = np.searchsorted(rest.keys, key)
        if point == len(rest.keys) or rest.keys[point] != key:
            continue
        own[:] = 0
        own[alone.wide - 1] = ways.past
        own[alone.wide - 3] = times[one, free + alone.number]
        own[alone.wide - 2] = times[one, free + devices + alone.number]
        for n in range(run.shape[1]):
            if alone.column[n] != NO_STEP:
                for k in range(run[one, n + 1], run[one, n]):
                    ended = times[one, ways.column[n] + k - run[one, ways.final[n]]]
                    own[alone.column[n] + k - run[one, alone.last[n]]] = ended + alone.longer[n]
        for row in rest.rows[point, : rest.many[point]]:
            late = False
            for place in range(alone.wide):
                if own[place] + row[place] >= below:
                    late = True
                    break
            if not late:
                found[one] = True
                break
    return found
