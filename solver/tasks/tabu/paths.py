"""When jobs start by the orders of streams, what follows them, and which are critical, compiled for tabu search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

Array = Any  # numpy arrays of int64, one dimension unless said


class Graph(NamedTuple):
    """By job: steps, and what comes before and after it, with lags, in compressed rows."""

    steps: Array
    before_at: Array
    before: Array
    before_lag: Array
    after_at: Array
    after: Array
    after_lag: Array


class Orders(NamedTuple):
    """By job its neighbours on its stream (-1: none), and its `place` in `sequence`, behind all that it waits for."""

    previous: Array
    following: Array
    sequence: Array
    place: Array


class Times(NamedTuple):
    """By job: its start, and the time from its end to the last end."""

    head: Array
    tail: Array


@njit(cache=True, nogil=True)
def set_heads(graph, orders, times, since):  # type: ignore[no-untyped-def]
    """The starts of all from this place of the sequence on."""
    for at in range(since, graph.steps.shape[0]):
        n, begin = orders.sequence[at], 0
        for a in range(graph.before_at[n], graph.before_at[n + 1]):
            b = graph.before[a]
            begin = max(begin, times.head[b] + graph.steps[b] + graph.before_lag[a])
        b = orders.previous[n]
        if b >= 0:
            begin = max(begin, times.head[b] + graph.steps[b])
        times.head[n] = begin


@njit(cache=True, nogil=True)
def set_tails(graph, orders, times, until):  # type: ignore[no-untyped-def]
    """The times behind all up to this place of the sequence."""
    for at in range(until, -1, -1):
        n, rest = orders.sequence[at], 0
        for a in range(graph.after_at[n], graph.after_at[n + 1]):
            b = graph.after[a]
            rest = max(rest, times.tail[b] + graph.steps[b] + graph.after_lag[a])
        b = orders.following[n]
        if b >= 0:
            rest = max(rest, times.tail[b] + graph.steps[b])
        times.tail[n] = rest


@njit(cache=True, nogil=True)
def may_move(graph, times, first, last, behind):  # type: ignore[no-untyped-def]
    """Whether the first certainly comes `behind` the last, or the last before the first, without a cycle of waiting."""
    if behind:
        rest = times.tail[last] + graph.steps[last]
        for a in range(graph.after_at[first], graph.after_at[first + 1]):
            n = graph.after[a]
            if n == last or rest < times.tail[n] + graph.steps[n]:
                return False
        return True
    end = times.head[first] + graph.steps[first]
    for a in range(graph.before_at[last], graph.before_at[last + 1]):
        n = graph.before[a]
        if n == first or end < times.head[n] + graph.steps[n]:
            return False
    return True


@njit(cache=True, nogil=True)
def length_through(graph, times, row, count, before, after, heads):  # type: ignore[no-untyped-def]
    """The longest path through a row of jobs between two others of a stream, by what is known of all others."""
    time, most = times.head[before] + graph.steps[before] if before >= 0 else 0, 0
    for at in range(count):
        n = row[at]
        for a in range(graph.before_at[n], graph.before_at[n + 1]):
            b = graph.before[a]
            time = max(time, times.head[b] + graph.steps[b] + graph.before_lag[a])
        heads[at] = time
        time += graph.steps[n]
    time = times.tail[after] + graph.steps[after] if after >= 0 else 0
    for at in range(count - 1, -1, -1):
        n = row[at]
        for a in range(graph.after_at[n], graph.after_at[n + 1]):
            b = graph.after[a]
            time = max(time, times.tail[b] + graph.steps[b] + graph.after_lag[a])
        time += graph.steps[n]
        most = max(most, heads[at] + time)
    return most


@njit(cache=True, nogil=True)
def critical_path(graph, orders, times, end, path):  # type: ignore[no-untyped-def]
    """One of the critical paths by chance, at the end of `path`; where it begins there."""
    n, seen, at = -1, 0, path.shape[0]
    for one in range(path.shape[0]):
        if times.head[one] + graph.steps[one] == end:
            seen += 1
            n = one if np.random.randint(seen) == 0 else n
    while n >= 0:
        at -= 1
        path[at] = n
        chosen, seen, previous = -1, 0, orders.previous[n]
        if times.head[n] > 0:
            if previous >= 0 and times.head[previous] + graph.steps[previous] == times.head[n]:
                chosen, seen = previous, 1
            for a in range(graph.before_at[n], graph.before_at[n + 1]):
                b = graph.before[a]
                if b != previous and times.head[b] + graph.steps[b] + graph.before_lag[a] == times.head[n]:
                    seen += 1
                    chosen = b if np.random.randint(seen) == 0 else chosen
        n = chosen
    return at
