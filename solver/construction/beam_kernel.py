"""Beam search over orders of forwards and backwards on a line of devices, one stage each, compiled.

A node is a row of numbers: how many forwards and backwards have run on each stage, how many weight passes wait there,
when each device is free, and when the last pass of each micro-batch under way ended. All nodes of a layer have run as
many passes. From each the pass that could end first is looked for (Giffler and Thompson, Operations Research 8, 1960):
what may be next on its device and could start before that end is tried. Of all that comes of it the best stay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.int64]

# Rows of `Line.stages`: durations, what F takes, what a waiting W holds, the room, the lags to the next stage and back
# from it, and the least time before the first forward.
FORWARD, GRADIENT, WEIGHT, FUSED, TAKES, WAITING, ROOM, DOWN, UP, HEAD = range(10)
# Kinds of passes: a forward, a gradient whose weight pass waits, a full backward.
_F, _B, _BW, _KINDS = 0, 1, 2, 3
# What `Line.modes` says of a backward.
SPLIT, FULL, EITHER = 0, 1, 2
# What a node has by stage; the times of micro-batches follow.
_FORWARDS, _BACKWARDS, _OPEN, _FREE, _ROWS = 0, 1, 2, 3, 4
_NEVER = 1 << 62


class Line(NamedTuple):
    """A problem as the kernel reads it: its stages in turn, and `path[n]`, the least time from the start of step n on.

    A micro-batch's steps are its forwards, then its gradients. `split` and `fused` say which backwards there may be,
    `modes[s, j]` which that of a stage and micro-batch may be; `in_flight` how many micro-batches at most are between
    forward and gradient of the first stage.
    """

    stages: Array
    path: Array
    microbatches: int
    in_flight: int
    split: bool
    fused: bool
    makespan: bool
    modes: Array


class Preference(NamedTuple):
    """What a run prefers: beside the largest bound, `even` is the weight of the mean over devices, `trips` that of the
    mean over micro-batches under way. At most `alike` nodes that have run the same passes stay. A weight pass delays
    what comes by `patience` percent of itself at most.
    """

    even: float
    trips: float
    alike: int
    patience: int


@njit(cache=True, nogil=True)
def _allowed(line, node, kind, s):  # type: ignore[no-untyped-def]
    j = node[_BACKWARDS * line.stages.shape[1] + s]
    if kind == _F or j == line.microbatches:
        return kind == _F
    return line.modes[s, j] != (FULL if kind == _B else SPLIT)


@njit(cache=True, nogil=True)
def _start(line, node, most, patience, kind, s):  # type: ignore[no-untyped-def]
    """When the next pass of a kind may start on a stage, and how many weight passes run before; -1 where none may.

    Weight passes that end `patience[s]` ticks after it could start run before it.
    """
    p, stages = line.stages.shape[1], line.stages
    forwards, backwards, waiting = node[_FORWARDS * p + s], node[_BACKWARDS * p + s], node[_OPEN * p + s]
    free, ends, run, arrival = node[_FREE * p + s], _ROWS * p, 0, -1
    if kind == _F:
        may = forwards < line.microbatches and forwards - backwards < most[s]
        if may and (s == 0 or node[_FORWARDS * p + s - 1] > forwards):
            held = (forwards - backwards + 1) * stages[TAKES, s] + waiting * stages[WAITING, s]
            while held > stages[ROOM, s] and run < waiting:
                run, held = run + 1, held - stages[WAITING, s]
            if held <= stages[ROOM, s]:
                arrival = node[ends + forwards] + stages[DOWN, s - 1] if s > 0 else free
    elif backwards < forwards and (s == p - 1 or node[_BACKWARDS * p + s + 1] > backwards):
        arrival = node[ends + backwards] + (stages[UP, s] if s < p - 1 else 0)
    if arrival < 0:
        return -1, 0
    weight = stages[WEIGHT, s]
    if run < waiting:
        latest = max(arrival, free + run * weight) + patience[s]
        while run < waiting and free + (run + 1) * weight <= latest:
            run += 1
    return max(arrival, free + run * weight), run


@njit(cache=True, nogil=True)
def _duration(line, kind, s):  # type: ignore[no-untyped-def]
    return line.stages[FORWARD if kind == _F else GRADIENT if kind == _B else FUSED, s]


@njit(cache=True, nogil=True)
def _least_end(line, node, s):  # type: ignore[no-untyped-def]
    """What is left on a device, and then the way of the last gradient back to the first one; 0 where none is left."""
    p, stages = line.stages.shape[1], line.stages
    backwards = line.microbatches - node[_BACKWARDS * p + s]
    if backwards == 0:
        return 0
    gradient = stages[GRADIENT if line.split else FUSED, s]
    whole = gradient + stages[WEIGHT, s] if line.split else gradient
    whole = min(whole, stages[FUSED, s]) if line.fused else whole
    now = node[_FREE * p + s] + (line.microbatches - node[_FORWARDS * p + s]) * stages[FORWARD, s]
    rest = now + backwards * whole + node[_OPEN * p + s] * stages[WEIGHT, s]
    rest -= 0 if line.makespan else stages[HEAD, s]
    return max(rest, now + backwards * gradient + line.path[2 * p - s])


@njit(cache=True, nogil=True)
def _value(line, node, prefers):  # type: ignore[no-untyped-def]
    """The largest of the least ends of devices and of micro-batches under way, and some of their means."""
    p, most, last = line.stages.shape[1], line.in_flight, line.microbatches - 1
    worst, total, trips, under_way = 0, 0, 0, 0
    for s in range(p):
        end = _least_end(line, node, s)
        worst, total = max(worst, end), total + end
    step, gradient = 2 * p, line.stages[GRADIENT if line.split else FUSED, 0]
    for j in range(node[_BACKWARDS * p], node[_FORWARDS * p]):
        # None has come further than the one before it.
        while (node[_FORWARDS * p + step - 1] if step <= p else node[_BACKWARDS * p + 2 * p - step]) <= j:
            step -= 1
        # Each micro-batch begins when one before it is back, as many later as are in flight.
        rounds = (last - j) // most
        end = node[_ROWS * p + j] + line.path[step] + rounds * line.path[0] + (last - j - rounds * most) * gradient
        worst, trips, under_way = max(worst, end), trips + end, under_way + 1
    return worst + prefers.even * total / p + prefers.trips * trips / max(1, under_way)


@njit(cache=True, nogil=True)
def _put(line, node, kind, s, start, run):  # type: ignore[no-untyped-def]
    """Change a node by a pass with so many weight passes before it."""
    p = line.stages.shape[1]
    row = _FORWARDS if kind == _F else _BACKWARDS
    j = node[row * p + s]
    node[row * p + s] += 1
    node[_OPEN * p + s] += (1 if kind == _B else 0) - run
    node[_FREE * p + s] = node[_ROWS * p + j] = start + _duration(line, kind, s)


@njit(cache=True, nogil=True)
def _next_device(line, node, most, patience):  # type: ignore[no-untyped-def]
    """The stage of the pass that could end first, and when; -1 where nothing can run."""
    best, device = _NEVER, -1
    for s in range(line.stages.shape[1]):
        for kind in range(_KINDS):
            if _allowed(line, node, kind, s):
                start, _ = _start(line, node, most, patience, kind, s)
                if start >= 0 and start + _duration(line, kind, s) < best:
                    best, device = start + _duration(line, kind, s), s
    return device, best


@njit(cache=True, nogil=True)
def _end(line, node):  # type: ignore[no-untyped-def]
    """When a device has run all at the latest; for the span, after it could start."""
    p, end = line.stages.shape[1], 0
    for s in range(p):
        own = node[_FREE * p + s] + node[_OPEN * p + s] * line.stages[WEIGHT, s]
        end = max(end, own - (0 if line.makespan else line.stages[HEAD, s]))
    return end


@njit(cache=True, nogil=True)
def stay(values, keys, count, alike, table, stays):  # type: ignore[no-untyped-def]
    """The places of the best, of equal keys so many at most; how many these are. `table` is for keys and numbers."""
    table[:] = 0
    kept, mask = 0, table.shape[0] - 1
    for x in np.argsort(values[:count]):
        key = max(1, keys[x])
        slot = key & mask
        while table[slot, 0] != 0 and table[slot, 0] != key:
            slot = (slot + 1) & mask
        if table[slot, 1] < alike and kept < stays.shape[0]:
            table[slot, 0], table[slot, 1] = key, table[slot, 1] + 1
            stays[kept] = x
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def children(line, now, count, most, prefers, patience, names, new, values, keys, made):  # type: ignore[no-untyped-def]
    """Fill in what comes of `count` nodes: nodes, values, keys of what has run, where from and by what; how many."""
    p, found = line.stages.shape[1], 0
    for one in range(count):
        s, first_end = _next_device(line, now[one], most, patience)
        for kind in range(_KINDS):
            if s >= 0 and _allowed(line, now[one], kind, s):
                start, run = _start(line, now[one], most, patience, kind, s)
                # Passes of no length start when the first one ends.
                if start >= 0 and (start < first_end or start + _duration(line, kind, s) == first_end):
                    new[found] = now[one]
                    _put(line, new[found], kind, s, start, run)
                    values[found] = _value(line, new[found], prefers)
                    key = 0
                    for n in range(len(names)):
                        key += new[found, n] * names[n]
                    keys[found] = key & (_NEVER - 1)
                    made[found, 0], made[found, 1] = one, (run * _KINDS + kind) * p + s
                    found += 1
    return found


@njit(cache=True, nogil=True)
def run_beam(line, most, prefers, width, put, halt):  # type: ignore[no-untyped-def]
    """Fills `put` with kind, stage and the weight passes before it, in the order in which passes are put.

    `most[s]` micro-batches may be in flight on stage s. Returns what the objective is at most; -1 where not all could
    be put. `halt[0]` ends it early.
    """
    p, layers, most_made = line.stages.shape[1], put.shape[0], _KINDS * width
    patience = line.stages[WEIGHT] * prefers.patience // 100
    np.random.seed(0)
    names = np.random.randint(1, 1 << 60, _FREE * p)
    now = np.zeros((width, _ROWS * p + line.microbatches), np.int64)
    new = np.zeros((most_made, now.shape[1]), np.int64)
    values, keys, stays = np.zeros(most_made), np.zeros(most_made, np.int64), np.zeros(width, np.int64)
    made, chosen = np.zeros((most_made, 2), np.int32), np.zeros((layers, width, 2), np.int32)
    size = 16
    while size < 2 * most_made:
        size *= 2
    table, count = np.zeros((size, 2), np.int64), 1
    for layer in range(layers):
        found = children(line, now, count, most, prefers, patience, names, new, values, keys, made)
        if found == 0 or halt[0]:
            return -1
        count = stay(values, keys, found, prefers.alike, table, stays)
        for one in range(count):
            now[one], chosen[layer, one] = new[stays[one]], made[stays[one]]
    at, best = 0, _NEVER
    for one in range(count):
        end = _end(line, now[one])
        if end < best:
            at, best = one, end
    for layer in range(layers - 1, -1, -1):
        code = chosen[layer, at, 1]
        put[layer, 0], put[layer, 1], put[layer, 2] = code // p % _KINDS, code % p, code // (_KINDS * p)
        at = chosen[layer, at, 0]
    return best
