"""Moves a job behind or before others of its stream, compiled; the sequence stays behind all that jobs wait for."""

from __future__ import annotations

from numba import njit


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
