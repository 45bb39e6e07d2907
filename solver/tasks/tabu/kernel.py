"""Tabu search over the orders of jobs on streams, compiled: jobs of a critical block move after or before each other.

A block is a maximal sequence of jobs of a critical path that follow each other on a stream. A schedule can only get
shorter if a job of some block moves before its first job or after its last one; moves into the block are tried too
(Nowicki and Smutnicki, Management Science 42, 1996; Balas and Vazacopoulos, Management Science 44, 1998; Zhang, Li,
Guan and Rao, Computers & Operations Research 34, 2007). Memory is ignored here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.compiled import compiled, inner
from solver.tasks.tabu.moves import may_move, move
from solver.tasks.tabu.paths import AFTER, BEFORE, Array, Orders, critical_path, length_through, set_longest

# The moves of one of two jobs of a block: after the last, before the first, from the first, from the last.
_MOVES = 4


class Effort(NamedTuple):
    """Limits of a run: `moves` in all, and `patience`, the moves without gain after which it ends.

    A move is tabu for `least_tenure` to `most_tenure` moves. A job moves past at most `far` others at once.
    """

    moves: int
    patience: int
    least_tenure: int
    most_tenure: int
    far: int


@inner
def moved_row(path: Array, low: int, high: int, side: int, row: Array, forbidden: Array, now: int) -> bool:
    """Write the jobs from place `low` to `high` of `path` into `row`, in their order after a move; True if it is tabu.

    The move puts the first of them after the last (`side` is `AFTER`) or the last before the first (`BEFORE`). It is
    tabu if it puts job i before job j again and `forbidden[i, j]`, the number of the first move that may do so, is
    greater than `now`.
    """
    moves_after = side == AFTER
    moving, tabu = path[low] if moves_after else path[high], False
    for at in range(low, high + 1):
        n = path[at]
        if n == moving:
            continue
        row[at - low - 1 if moves_after else at - low + 1] = n
        tabu = tabu or (forbidden[n, moving] if moves_after else forbidden[moving, n]) > now
    row[high - low if moves_after else 0] = moving
    return tabu


@inner
def best_move(
    orders: Orders, path: Array, begin: int, row: Array, paths: Array, forbidden: Array, now: int, best: int, far: int
) -> tuple[int, int, int]:
    """Return the move (low, high, side) of least estimated length, of those not tabu or shorter than `best` steps.

    The critical path is `path[begin:]`; low and high are indices in `path`, both included; the move is that of
    `moved_row`, over at most `far` jobs. If all moves are tabu, a random one is returned; high is -1 if there is no
    move. `now` is the number of the move; `forbidden[i, j]` is the number of the first move that may put job i before
    job j again. `row` and `paths` are working space.
    """
    chosen, least, ties, other, seen = (0, -1, AFTER), 0, 0, (0, -1, AFTER), 0
    low_end = begin
    while low_end < path.shape[0]:
        high_end = low_end
        while high_end + 1 < path.shape[0] and orders.neighbour[BEFORE, path[high_end + 1]] == path[high_end]:
            high_end += 1
        for at in range(low_end, high_end):
            for kind in range(_MOVES):
                side = AFTER if kind % 2 == 0 else BEFORE
                low = at if kind in (0, 3) else low_end
                high = high_end if kind in (0, 3) else at + 1
                twice = (kind == 2 and high == high_end) or (kind == 3 and low == low_end)
                if twice or high - low > far or not may_move(orders, path[low], path[high], side):
                    continue
                tabu = moved_row(path, low, high, side, row, forbidden, now)
                before, after = orders.neighbour[BEFORE, path[low]], orders.neighbour[AFTER, path[high]]
                length = length_through(orders, row, high - low + 1, before, after, paths)
                seen += 1
                other = (low, high, side) if np.random.randint(seen) == 0 else other
                if (tabu and length >= best) or (ties > 0 and length > least):
                    continue
                ties = ties + 1 if ties > 0 and length == least else 1
                if np.random.randint(ties) == 0:
                    chosen, least = (low, high, side), length
        low_end = high_end + 1
    return chosen if ties > 0 else other


@inner
def free_move(orders: Orders, path: Array) -> bool:
    """Find two random neighbours on a stream that can change places without a cycle; False if none were found.

    For a search in which no job of the critical path can move. The array of that path, with an entry for each job, is
    reused as output: the earlier of the two is written to `path[0]`, the later to `path[1]`. They are not moved yet. As
    many jobs are drawn as there are, each with the next one on its stream; so a pair may exist that is not found.
    """
    for _ in range(path.shape[0]):
        n = np.random.randint(path.shape[0])
        other = orders.neighbour[AFTER, n]
        if other >= 0 and may_move(orders, n, other, AFTER):
            path[0], path[1] = n, other
            return True
    return False


@inner
def forbid(orders: Orders, first: int, last: int, side: int, forbidden: Array, until: int) -> None:
    """Make the reversal of a move tabu until the move with number `until`; to be called before the move is made.

    The move puts job `first` after `last` on their stream (`side` is `AFTER`) or `last` before `first`. For each pair
    (i, j) of jobs that it reverses, of which i is before j until now, `forbidden[i, j]` becomes `until`.
    """
    n = orders.neighbour[AFTER, first] if side == AFTER else first
    while True:
        if side == AFTER:
            forbidden[first, n] = until
        elif n != last:
            forbidden[n, last] = until
        if n == last:
            return
        n = orders.neighbour[AFTER, n]


@inner
def _copy(times: Array, found: Array) -> None:
    """Copy `times` to `found`, entry by entry: Numba takes two seconds to compile a slice that is set to an array."""
    for n in range(len(times)):
        found[n] = times[n]


@compiled
def tabu_search(orders: Orders, effort: Effort, seed: int, halt: Array, starts: Array) -> int:
    """Search from these orders.

    Write the starts of the shortest schedule found into `starts` and return its end, in steps. `starts` is by job. The
    orders are changed in place; `effort` limits the moves, `seed` is that of the random numbers. Another thread ends
    the run by setting `halt[0]`.
    """
    np.random.seed(seed)
    steps, heads = orders.steps, orders.longest[BEFORE]
    count = steps.shape[0]
    forbidden, mark = np.zeros((count, count), np.int32), np.zeros(count, np.int64)
    path, row, paths = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    set_longest(orders, BEFORE, 0)
    set_longest(orders, AFTER, count - 1)
    end = best = (heads + steps).max()
    _copy(heads, starts)
    since = 0
    for now in range(1, effort.moves + 1):
        if halt[0] or now - since > effort.patience:
            break
        begin = critical_path(orders, end, path)
        low, high, side = best_move(orders, path, begin, row, paths, forbidden, now, best, effort.far)
        if high < 0:
            if not free_move(orders, path):
                break
            low, high, side = 0, 1, AFTER
        first, last = path[low], path[high]
        until = now + effort.least_tenure + np.random.randint(effort.most_tenure - effort.least_tenure + 1)
        forbid(orders, first, last, side, forbidden, until)
        move(orders, first, last, side, row, mark, now)
        end = (heads + steps).max()
        if end < best:
            best, since = end, now
            _copy(heads, starts)
    return best
