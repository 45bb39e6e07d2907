"""Starts and tails of jobs by the orders of streams, and critical paths, compiled for tabu search.

Predecessors and successors of a job are mirror images: one function serves both sides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipesched.compiled import inner

BEFORE, AFTER = 0, 1

Array = Any  # numpy arrays of int64


class Orders(NamedTuple):
    """Jobs with their predecessors and successors: the first axis of two-sided arrays is the side (`BEFORE`, `AFTER`).

    By job: `steps`, and its `place` in the topological `sequence`. By side and job: `row_at`, where its predecessors or
    successors begin in `jobs` and `lags` (both sides in one array); the `neighbour` on its stream (-1: none); and the
    `longest` path on that side, which is its start or its tail.
    """

    steps: Array
    sequence: Array
    place: Array
    row_at: Array
    jobs: Array
    lags: Array
    neighbour: Array
    longest: Array


@inner
def set_longest(orders: Orders, side: int, place: int) -> None:
    """Update the longest paths of jobs, in steps, from a place of the sequence on.

    They are starts up to its end, or tails to its start. `side` is BEFORE for starts, the longest path to a job, or
    AFTER for tails, the longest from its end. Those of jobs earlier in that direction must be right.
    """
    stop, step = (orders.sequence.shape[0], 1) if side == BEFORE else (-1, -1)
    for at in range(place, stop, step):
        n, path = orders.sequence[at], 0
        for a in range(orders.row_at[side, n], orders.row_at[side, n + 1]):
            b = orders.jobs[a]
            path = max(path, orders.longest[side, b] + orders.steps[b] + orders.lags[a])
        b = orders.neighbour[side, n]
        if b >= 0:
            path = max(path, orders.longest[side, b] + orders.steps[b])
        orders.longest[side, n] = path


@inner
def may_pass(orders: Orders, side: int, moving: int, other: int) -> bool:
    """True if moving job `moving` past `other` on this side of its stream certainly makes no cycle.

    It makes none if no arc leads from `moving` on this side to `other`, or to a job whose longest path, with the job,
    is longer than that of `other`. The test is sufficient only: False is also returned for some moves without a cycle.
    """
    path = orders.longest[side, other] + orders.steps[other]
    for a in range(orders.row_at[side, moving], orders.row_at[side, moving + 1]):
        n = orders.jobs[a]
        if n == other or path < orders.longest[side, n] + orders.steps[n]:
            return False
    return True


@inner
def add_paths(
    orders: Orders, side: int, row: Array, first: int, stop: int, step: int, neighbour: int, paths: Array
) -> None:
    """Add to `paths[k]` the longest path, in steps, from one side to job `row[k]`.

    k goes from `first` to `stop`, excluded, by `step`. The jobs of `row` follow each other on their stream in that
    direction, the first of them after job `neighbour` (-1: none).
    """
    path = orders.longest[side, neighbour] + orders.steps[neighbour] if neighbour >= 0 else 0
    for at in range(first, stop, step):
        n = row[at]
        for a in range(orders.row_at[side, n], orders.row_at[side, n + 1]):
            b = orders.jobs[a]
            path = max(path, orders.longest[side, b] + orders.steps[b] + orders.lags[a])
        paths[at] += path
        path += orders.steps[n]


@inner
def length_through(orders: Orders, row: Array, count: int, before: int, after: int, paths: Array) -> int:
    """Return the longest path in steps through `row[:count]`, if these jobs follow each other so between two others.

    `before` and `after` are those others on their stream (-1: none). The result is an estimate, as the longest paths of
    other jobs are those without the move. `paths` is working space, by place in `row`.
    """
    for at in range(count):
        paths[at] = orders.steps[row[at]]
    add_paths(orders, BEFORE, row, 0, count, 1, before, paths)
    add_paths(orders, AFTER, row, count - 1, -1, -1, after, paths)
    most = 0
    for at in range(count):
        most = max(most, paths[at])
    return most


@inner
def critical_path(orders: Orders, end: int, path: Array) -> int:
    """Write a random critical path into the last entries of `path`, in order; return the index of its first job there.

    `end` is the latest end of the schedule in steps. Where several predecessors end just in time, each is equally
    likely.
    """
    n, seen, at = -1, 0, path.shape[0]
    for one in range(path.shape[0]):
        if orders.longest[BEFORE, one] + orders.steps[one] == end:
            seen += 1
            n = one if np.random.randint(seen) == 0 else n
    while n >= 0:
        at -= 1
        path[at] = n
        start = orders.longest[BEFORE, n]
        chosen, seen, neighbour = -1, 0, orders.neighbour[BEFORE, n]
        if start > 0:
            if neighbour >= 0 and orders.longest[BEFORE, neighbour] + orders.steps[neighbour] == start:
                chosen, seen = neighbour, 1
            for a in range(orders.row_at[BEFORE, n], orders.row_at[BEFORE, n + 1]):
                b = orders.jobs[a]
                if b != neighbour and orders.longest[BEFORE, b] + orders.steps[b] + orders.lags[a] == start:
                    seen += 1
                    chosen = b if np.random.randint(seen) == 0 else chosen
        n = chosen
    return at
