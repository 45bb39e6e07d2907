"""Moves of a job after or before others of its stream, compiled; the sequence of all jobs stays topological."""

from __future__ import annotations

from pipesched.compiled import inner
from solver.tasks.tabu.paths import AFTER, BEFORE, Array, Orders, may_pass, set_longest


@inner
def may_move(orders: Orders, first: int, last: int, side: int) -> bool:
    """True if moving job `first` after `last`, or `last` before `first`, certainly makes no cycle.

    The former is for side `AFTER`, the latter for `BEFORE`. Both are on one stream, `first` earlier than `last`. False
    may be returned for a move that makes no cycle, either.
    """
    return may_pass(orders, side, first, last) if side == AFTER else may_pass(orders, side, last, first)


@inner
def move(orders: Orders, first: int, last: int, side: int, row: Array, mark: Array, now: int) -> None:
    """Move job `first` after `last` (side `AFTER`) or `last` before `first` (`BEFORE`), and update the longest paths.

    Both are on one stream, `first` earlier. `row` is working space for the jobs that move in the topological sequence;
    `mark` has an integer for each job, none of which is `now` yet.
    """
    low, high = orders.place[first], orders.place[last]
    if side == AFTER:
        move_past(orders, side, first, last, row, mark, now)
    else:
        move_past(orders, side, last, first, row, mark, now)
    set_longest(orders, BEFORE, low)
    set_longest(orders, AFTER, high)


@inner
def move_past(orders: Orders, side: int, moving: int, other: int, row: Array, mark: Array, now: int) -> None:
    """Move job `moving` past `other` on this side (`BEFORE` or `AFTER`) of its stream; `may_move` must be true of that.

    In the topological sequence the jobs between them that depend on it (side `BEFORE`: that it depends on) move with
    it. `row` is working space for these, and they get `mark[n] = now`. Longest paths are not updated.
    """
    back, step = 1 - side, 1 if side == AFTER else -1
    start, end, inner = orders.neighbour[back, moving], orders.neighbour[side, other], orders.neighbour[side, moving]
    link(orders, side, start, inner)
    link(orders, side, other, moving)
    link(orders, side, moving, end)
    place, stop = orders.place[moving], orders.place[other] + step
    row[0], count, mark[moving] = moving, 1, now
    for at in range(place + step, stop, step):
        n = orders.sequence[at]
        neighbour = orders.neighbour[back, n]
        moves_too = neighbour >= 0 and mark[neighbour] == now
        for a in range(orders.row_at[back, n], orders.row_at[back, n + 1]):
            moves_too = moves_too or mark[orders.jobs[a]] == now
        if moves_too:
            row[count], mark[n], count = n, now, count + 1
        else:
            orders.sequence[place], orders.place[n], place = n, place, place + step
    for at in range(count):
        orders.sequence[place + step * at], orders.place[row[at]] = row[at], place + step * at


@inner
def link(orders: Orders, side: int, one: int, other: int) -> None:
    """Make job `other` the neighbour of `one` on this side of their stream, and `one` that of `other` opposite.

    If one of the two is -1, the other one has no neighbour there any more. Nothing else changes.
    """
    if one >= 0:
        orders.neighbour[side, one] = other
    if other >= 0:
        orders.neighbour[1 - side, other] = one
