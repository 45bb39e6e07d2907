"""The layers of a diagram, from nothing run to all: every move of every label, then those that are kept distinct."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.checking.diagram.completion import FOREVER, back_over
from pipesched.checking.diagram.guide import Guide, ask, look_ahead, no_guide
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.moves import Labels, Layer, behind_of, moves_from, raise_times, run_move, waiting
from pipesched.checking.diagram.repetition import ROUNDS, may_repeat, repeated
from pipesched.checking.diagram.walk import NOTHING, Numbers, Steps, Walk, runs_of
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled, inner

# Labels beyond which the check would take minutes, and at once, gigabytes.
_MOST, _MOST_AT_ONCE = 150_000_000, 4_000_000
_LATE = 2**60


def least_end(
    walk: Walk, width: int, guides: Sequence[Guide] = (), below: int | None = None, layers: list[Layer] | None = None
) -> int:
    """When all that counts has ended at the earliest, or the value below which labels are followed; notes layers."""
    steps, done, looked, rounds = walk.steps, 0, 0, list[Layer]()
    least = limit = _LATE if below is None else below
    skips, first = not guides and may_repeat(steps), guides[0] if guides else no_guide()
    label = np.zeros((1, steps.columns + 2 * len(steps.room)), np.int32 if walk.longest < FOREVER else np.int64)
    label[:, steps.columns :] = steps.past
    reached = Layer(np.zeros(1, np.int64), np.array([0, 1]), label)
    waits = none = reached.keys[:0], label[:0]
    while len(reached.keys) or len(waits[0]):
        if layers is not None:
            layers.append(reached)
        run = runs_of(reached.keys, done, steps)
        moves = moves_from(reached.keys, run, steps)
        blocks = moves[:, 2] >= 0
        near = expand(run, reached, moves[~blocks], steps, first, limit)
        far = expand(run, reached, moves[blocks], steps, first, limit) if blocks.any() else (*none, limit, 0)
        keys, labels = np.concatenate([near[0], waits[0]]), np.concatenate([near[1], waits[1]])
        waits, least, looked, done = far[:2], min(least, near[2], far[2]), looked + near[3] + far[3], done + 1
        if looked > _MOST or len(keys) + len(waits[0]) > _MOST_AT_ONCE:
            raise NotCoveredError("too many orders to try them all")
        reached = _reduced(keys, labels, done, width, steps, guides, limit)
        if skips and done % len(steps.ticks) == 0 and len(rounds) < ROUNDS:
            rounds.append(reached)
            if len(rounds) == ROUNDS:
                skipped, later = repeated(rounds, done, steps)
                reached, done = reached._replace(labels=reached.labels + later), done + skipped * len(steps.ticks)
    return least


def _reduced(
    keys: Numbers, labels: Labels, done: int, width: int, steps: Steps, guides: Sequence[Guide], below: int
) -> Layer:
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
    return Layer(keys[order[since]], np.append(0, np.cumsum(counts)), kept)


@compiled
def expand(
    run: Numbers, reached: Layer, moves: Numbers, steps: Steps, guide: Guide, below: int
) -> tuple[Numbers, Labels, int, int]:
    """The keys and labels after these moves, the least end of orders that are over, and how many were tried.

    Of a guide with one row for a state it is asked before the move what follows, since most labels are left out without
    one. After it no less would be left out.
    """
    at, labels, found, looked, least = reached.at, reached.labels, 0, 0, _LATE
    keys, new = np.empty(2 * len(labels) + 1, np.int64), np.empty((2 * len(labels) + 1, labels.shape[1]), labels.dtype)
    after, looks = np.empty(run.shape[1], np.int64), np.empty((5, labels.shape[1]), np.int64)
    before, follows = np.empty(labels.shape[1], np.int64), np.empty(labels.shape[1], np.int64)
    for one, n, g, may, over, key in moves:
        for step in range(len(after)):
            after[step] = run[one, step] + (1 if step in (n, g) else 0)
        under_way, since, until, said = waiting(after, looks, steps), -1, -1, 0
        if not over:
            since, until, said = look_ahead(after, looks, under_way, steps, guide)
        if since == until >= 0:
            continue
        ask_before = until == since + 1
        if ask_before:
            follows[:] = NOTHING
            for which in range(said):
                column, row = looks[2, which], guide.rows[since]
                follows[column] = max(follows[column], row[looks[3, which]] - looks[4, which])
            back_over(before, follows, n, g, run[one], may, steps)
        for k in range(at[one], at[one + 1]):
            looked += 1
            if ask_before and not _all_below(labels[k], before, below):
                continue
            if found == len(keys):
                keys, new = np.concatenate((keys, keys)), np.concatenate((new, new))
            new[found], keys[found] = labels[k], key
            end = run_move(new[found], n, g, run[one], may, steps)
            if over:
                least = min(least, _value(new[found], end + behind_of(n, g, steps), steps))
            elif end + behind_of(n, g, steps) < below:
                raise_times(new[found], after, looks, under_way, steps)
                found += 1
    return keys[:found].copy(), new[:found].copy(), least, looked


@inner
def _value(label: Labels, done: int, steps: Steps) -> int:
    """When all that counts has ended, of an order that is over, whose last micro-batch is done then."""
    latest = np.int64(max(0, done))
    for device in steps.counted:
        latest = max(latest, np.int64(label[steps.columns + len(steps.room) + device]))
    return int(latest)


@inner
def _all_below(label: Labels, follows: Numbers, below: int) -> bool:
    """Whether each time and what follows it come to less."""
    for place in range(len(follows)):  # noqa: SIM110 - Numba compiles no generator
        if label[place] + follows[place] >= below:
            return False
    return True
