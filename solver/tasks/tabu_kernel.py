"""Tabu search over the orders of jobs on streams, compiled: jobs of a critical block move behind or before each other.

A block is a row of jobs of a critical path that follow each other on a stream. A schedule only gets shorter where a job
of some block goes before its first job or behind its last one; moves into the block are tried too (Nowicki and
Smutnicki, Management Science 42, 1996; Balas and Vazacopoulos, Management Science 44, 1998; Zhang, Li, Guan and Rao,
Computers & Operations Research 34, 2007). Memory is no matter here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

Array = Any  # numpy arrays of int64, one dimension unless said

# The ways to move one of two jobs of a block: it goes behind the last, before the first, from the first, from the last.
_WAYS = 4


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


class Effort(NamedTuple):
    """Moves in all, and without a better end; for how many moves one may not be undone; how far a job moves."""

    moves: int
    patience: int
    least_tenure: int
    most_tenure: int
    far: int


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


@njit(cache=True, nogil=True)
def moved_row(path, low, high, behind, row, forbidden, now):  # type: ignore[no-untyped-def]
    """Write the jobs from place `low` to `high` of the path as a move has them; whether the move is forbidden now."""
    moving, tabu = path[low] if behind else path[high], False
    for at in range(low, high + 1):
        n = path[at]
        if n == moving:
            continue
        row[at - low - 1 if behind else at - low + 1] = n
        tabu = tabu or (forbidden[n, moving] if behind else forbidden[moving, n]) > now
    row[high - low if behind else 0] = moving
    return tabu


@njit(cache=True, nogil=True)
def best_move(graph, orders, times, path, begin, row, heads, forbidden, now, best, far):  # type: ignore[no-untyped-def]
    """The move that promises the least end, of those not forbidden or better than the best: (low, high, behind).

    Any one, where all are forbidden; high is -1 where there is none.
    """
    chosen, least, ties, other, seen = (0, -1, True), 0, 0, (0, -1, True), 0
    low_end = begin
    while low_end < path.shape[0]:
        high_end = low_end
        while high_end + 1 < path.shape[0] and orders.previous[path[high_end + 1]] == path[high_end]:
            high_end += 1
        for at in range(low_end, high_end):
            for way in range(_WAYS):
                behind = way % 2 == 0
                low = at if way in (0, 3) else low_end
                high = high_end if way in (0, 3) else at + 1
                twice = (way == 2 and high == high_end) or (way == 3 and low == low_end)
                if twice or high - low > far or not may_move(graph, times, path[low], path[high], behind):
                    continue
                tabu = moved_row(path, low, high, behind, row, forbidden, now)
                before, after = orders.previous[path[low]], orders.following[path[high]]
                length = length_through(graph, times, row, high - low + 1, before, after, heads)
                seen += 1
                other = (low, high, behind) if np.random.randint(seen) == 0 else other
                if (tabu and length >= best) or (ties > 0 and length > least):
                    continue
                ties = ties + 1 if ties > 0 and length == least else 1
                if np.random.randint(ties) == 0:
                    chosen, least = (low, high, behind), length
        low_end = high_end + 1
    return chosen if ties > 0 else other


@njit(cache=True, nogil=True)
def free_move(graph, orders, times, path):  # type: ignore[no-untyped-def]
    """Two neighbours of a stream that may change places, as a path of two; whether some were found."""
    for _ in range(path.shape[0]):
        n = np.random.randint(path.shape[0])
        if orders.following[n] >= 0 and may_move(graph, times, n, orders.following[n], True):
            path[0], path[1] = n, orders.following[n]
            return True
    return False


@njit(cache=True, nogil=True)
def link(orders, before, after):  # type: ignore[no-untyped-def]
    """Two jobs, or none, follow each other on a stream."""
    if before >= 0:
        orders.following[before] = after
    if after >= 0:
        orders.previous[after] = before


@njit(cache=True, nogil=True)
def move_behind(graph, orders, first, last, row, mark, now):  # type: ignore[no-untyped-def]
    """The first job comes behind the last; with it, in the sequence, what waits for it. `mark` holds no `now` yet."""
    before, after, inner = orders.previous[first], orders.following[last], orders.following[first]
    link(orders, before, inner)
    link(orders, last, first)
    link(orders, first, after)
    low, high = orders.place[first], orders.place[last]
    row[0], count, place, mark[first] = first, 1, low, now
    for at in range(low + 1, high + 1):
        n = orders.sequence[at]
        waits = orders.previous[n] >= 0 and mark[orders.previous[n]] == now
        for a in range(graph.before_at[n], graph.before_at[n + 1]):
            waits = waits or mark[graph.before[a]] == now
        if waits:
            row[count], mark[n], count = n, now, count + 1
        else:
            orders.sequence[place], orders.place[n], place = n, place, place + 1
    for at in range(count):
        orders.sequence[place + at], orders.place[row[at]] = row[at], place + at


@njit(cache=True, nogil=True)
def move_before(graph, orders, first, last, row, mark, now):  # type: ignore[no-untyped-def]
    """The last job comes before the first; with it, in the sequence, what it waits for."""
    before, after, inner = orders.previous[first], orders.following[last], orders.previous[last]
    link(orders, inner, after)
    link(orders, before, last)
    link(orders, last, first)
    low, high = orders.place[first], orders.place[last]
    row[0], count, place, mark[last] = last, 1, high, now
    for at in range(high - 1, low - 1, -1):
        n = orders.sequence[at]
        waited = orders.following[n] >= 0 and mark[orders.following[n]] == now
        for a in range(graph.after_at[n], graph.after_at[n + 1]):
            waited = waited or mark[graph.after[a]] == now
        if waited:
            row[count], mark[n], count = n, now, count + 1
        else:
            orders.sequence[place], orders.place[n], place = n, place, place - 1
    for at in range(count):
        orders.sequence[place - at], orders.place[row[at]] = row[at], place - at


@njit(cache=True, nogil=True)
def forbid(orders, first, last, behind, forbidden, until):  # type: ignore[no-untyped-def]
    """What a move changes, called before it, may not be undone for a while."""
    n = orders.following[first] if behind else first
    while True:
        if behind:
            forbidden[first, n] = until
        elif n != last:
            forbidden[n, last] = until
        if n == last:
            return
        n = orders.following[n]


@njit(cache=True, nogil=True)
def tabu_search(graph, orders, effort, seed, halt, starts):  # type: ignore[no-untyped-def]
    """Write the starts of the shortest schedule found from these orders, which change; its end."""
    np.random.seed(seed)
    count = graph.steps.shape[0]
    times = Times(np.zeros(count, np.int64), np.zeros(count, np.int64))
    forbidden, mark = np.zeros((count, count), np.int32), np.zeros(count, np.int64)
    path, row, heads = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    set_heads(graph, orders, times, 0)
    set_tails(graph, orders, times, count - 1)
    end = best = (times.head + graph.steps).max()
    starts[:] = times.head
    since = 0
    for now in range(1, effort.moves + 1):
        if halt[0] or now - since > effort.patience:
            break
        begin = critical_path(graph, orders, times, end, path)
        low, high, behind = best_move(
            graph, orders, times, path, begin, row, heads, forbidden, now, best, effort.far)  # fmt: skip
        if high < 0:
            if not free_move(graph, orders, times, path):
                break
            low, high, behind = 0, 1, True
        first, last = path[low], path[high]
        until = now + effort.least_tenure + np.random.randint(effort.most_tenure - effort.least_tenure + 1)
        forbid(orders, first, last, behind, forbidden, until)
        since_place, until_place = orders.place[first], orders.place[last]
        if behind:
            move_behind(graph, orders, first, last, row, mark, now)
        else:
            move_before(graph, orders, first, last, row, mark, now)
        set_heads(graph, orders, times, since_place)
        set_tails(graph, orders, times, until_place)
        end = (times.head + graph.steps).max()
        if end < best:
            best, since = end, now
            starts[:] = times.head
    return best
