"""The layers of a diagram, from nothing run to all: every move of every label, then those that are kept distinct."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.checking.diagram.completion import FOREVER, back_over
from pipesched.checking.diagram.guide import Guide, ask, look_ahead, no_guide
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.moves import (
    Labels,
    allowed,
    moves_from,
    raise_times,
    run_after,
    run_move,
    value_of,
    waiting,
)
from pipesched.checking.diagram.repetition import ROUNDS, Reached, repeat, repeated, runs_of
from pipesched.checking.diagram.walk import NOTHING, Numbers, Steps, Walk
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled, inner

# Labels beyond which the check would take minutes, and at once, gigabytes.
_MOST, _MOST_AT_ONCE = 150_000_000, 4_000_000
_LATE = 2**60


def least_end(
    walk: Walk, width: int, guides: Sequence[Guide] = (), below: int | None = None, layers: list[Reached] | None = None
) -> int:
    """When all that counts has ended at the earliest, or the value below which labels are followed.

    Notes what is reached, by number of steps that have run.
    """
    steps, done, looked, rounds = walk.steps, 0, 0, list[Reached]()
    least = limit = _LATE if below is None else below
    skips, at_once = not guides and repeat(steps), guides[0] if guides else no_guide()
    reached = _nothing_run(walk)
    waits = reached.keys[:0], reached.labels[:0]
    while len(reached.keys) or len(waits[0]):
        if layers is not None:
            layers.append(reached)
        run = runs_of(reached.keys, done, steps)
        may = allowed(run, steps)
        moves = moves_from(may, steps)
        blocks = moves[:, 2] >= 0
        keys, labels, end, seen = expand(run, reached, may, moves[~blocks], steps, at_once, limit)
        keys, labels, least = np.concatenate([keys, waits[0]]), np.concatenate([labels, waits[1]]), min(least, end)
        waits = reached.keys[:0], reached.labels[:0]
        if blocks.any():
            *far, end, more = expand(run, reached, may, moves[blocks], steps, at_once, limit)
            waits = far[0], far[1]
            least, seen = min(least, end), seen + more
        done, looked = done + 1, looked + seen
        if looked > _MOST or len(keys) + len(waits[0]) > _MOST_AT_ONCE:
            raise NotCoveredError("too many orders to try them all")
        reached = _reduced(keys, labels, done, width, steps, guides, limit)
        if skips and done % len(steps.ticks) == 0 and len(rounds) < ROUNDS:
            rounds.append(reached)
            if len(rounds) == ROUNDS:
                skipped, later = repeated(rounds, done, steps)
                reached, done = reached._replace(labels=reached.labels + later), done + skipped * len(steps.ticks)
    return least


def _nothing_run(walk: Walk) -> Reached:
    size = walk.steps.columns + 2 * len(walk.steps.room)
    label = np.zeros((1, size), np.int32 if walk.longest < FOREVER else np.int64)
    label[:, walk.steps.columns :] = walk.steps.past
    return Reached(np.zeros(1, np.int64), np.array([0, 1]), label)


def _reduced(
    keys: Numbers, labels: Labels, done: int, width: int, steps: Steps, guides: Sequence[Guide], below: int
) -> Reached:
    """Of labels of which no guide says that they end late, those that are kept distinct."""
    order = np.argsort(keys, kind="stable")
    since = np.flatnonzero(np.diff(keys[order], prepend=-1))
    if guides:
        run, stay = runs_of(keys[order[since]], done, steps), np.ones(len(keys), np.bool_)
        for guide in guides:
            ask(run, np.append(since, len(keys)), order, labels, stay, below, steps, guide)
        order = order[stay[order]]
        since = np.flatnonzero(np.diff(keys[order], prepend=-1))
    counts, kept = told_apart(labels, order, np.append(since, len(order)), width)
    return Reached(keys[order[since]], np.append(0, np.cumsum(counts)), kept)


@compiled
def expand(
    run: Numbers, reached: Reached, may: Numbers, moves: Numbers, steps: Steps, guide: Guide, below: int
) -> tuple[Numbers, Labels, int, int]:
    """The keys and labels after these moves, the least end of orders that are over, and how many were tried.

    Of a guide with one row a state it is asked before a move, what follows its end, and most labels are left out
    without one; what it says after the move may leave out more, and never less.
    """
    at, labels = reached.at, reached.labels
    count, found, looked, least = labels.shape[1], 0, 0, np.int64(_LATE)
    keys, new = np.empty(2 * len(labels) + 1, np.int64), np.empty((2 * len(labels) + 1, count), labels.dtype)
    after, looks = np.empty(run.shape[1], np.int64), np.empty((5, count), np.int64)
    before, follows = np.empty(count, np.int64), np.empty(count, np.int64)
    for one, n, g in moves:
        over = run_after(after, run[one], n, g, steps)
        under_way, since, until = waiting(after, looks[0], looks[1], steps), 0, -1
        if not over:
            since, until, said = look_ahead(after, looks, under_way, steps, guide)
        if since == until >= 0:
            continue
        if until == since + 1:
            follows[:] = NOTHING
            for which in range(said):
                column, row = looks[2, which], guide.rows[since]
                follows[column] = max(follows[column], row[looks[3, which]] - looks[4, which])
            back_over(before, follows, n, g, NOTHING, run[one], may[one, n], steps)
        key = reached.keys[one] + steps.weights[n] + (steps.weights[g] if g >= 0 else 0)
        for k in range(at[one], at[one + 1]):
            looked += 1
            if until == since + 1 and not _all_below(labels[k], before, below):
                continue
            if found == len(keys):
                keys, new = np.concatenate((keys, keys)), np.concatenate((new, new))
            new[found] = labels[k]
            end = run_move(new[found], n, g, run[one], may[one, n], steps)
            if over:
                least = min(least, np.int64(value_of(new[found], n, g, end, steps)))
                continue
            raise_times(new[found], after, looks[0], looks[1], under_way, steps)
            keys[found] = key
            found += 1
    return keys[:found].copy(), new[:found].copy(), int(least), looked


@inner
def _all_below(label: Labels, follows: Numbers, below: int) -> bool:
    """Whether each time and what follows it come to less."""
    for place in range(len(follows)):  # noqa: SIM110 - Numba compiles no generator
        if label[place] + follows[place] >= below:
            return False
    return True
