"""The layers of a diagram, from nothing run to all: every move of every label, then pruning and merging.

Where rounds of steps repeat, in each of which every step runs once, the orders of many more are not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pipesched.checking.diagram.completion import FOREVER
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.moves import Labels, Layer, moves_from, raise_times, run_move, waiting
from pipesched.checking.diagram.projected_completion import SmallerBounds, ask
from pipesched.checking.diagram.walk import NONE, Numbers, Steps, Walk, runs_of
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled
from pipesched.deadline import ask as ask_for_time

# Labels beyond which the check would take minutes, and at once, gigabytes.
_MOST, _MOST_AT_ONCE = 150_000_000, 4_000_000
_LATE = 2**60
# Rounds, in each of which every step runs once, until repetitions are looked for, and of how many rounds.
_ROUNDS, _LOOK_BACK = 96, (*range(1, 17), 24, 32, 48, 64, 80)


def least_end(
    walk: Walk,
    width: int,
    guides: Sequence[SmallerBounds] = (),
    below: int | None = None,
    layers: list[Layer] | None = None,
) -> int:
    """The earliest end of the objective, or the threshold up to which labels are followed; records layers."""
    steps, done, looked, rounds = walk.steps, 0, 0, list[Layer]()
    # What ran before a later step's time 0 is not repeated.
    one_chain, from_start = steps.last[0] + 1 == len(steps.ticks), steps.owner in (NONE, steps.device[0])
    skips = not guides and one_chain and from_start and bool((steps.together < 0).all())
    least = limit = _LATE if below is None else below
    label = np.zeros((1, steps.columns + 2 * len(steps.room)), np.int32 if walk.longest < FOREVER else np.int64)
    label[:, steps.columns :] = steps.past
    reached = Layer(np.zeros(1, np.int64), np.array([0, 1]), label)
    waits = none = reached.keys[:0], label[:0]
    while len(reached.keys) or len(waits[0]):
        ask_for_time()
        if layers is not None:
            layers.append(reached)
        run = runs_of(reached.keys, done, steps)
        moves = moves_from(reached.keys, run, steps)
        blocks = moves[:, 2] >= 0
        near = expand(run, reached, moves[~blocks], steps, limit)
        far = expand(run, reached, moves[blocks], steps, limit) if blocks.any() else (*none, limit, 0)
        keys, labels = np.concatenate([near[0], waits[0]]), np.concatenate([near[1], waits[1]])
        waits, least, looked, done = far[:2], min(least, near[2], far[2]), looked + near[3] + far[3], done + 1
        if looked > _MOST or len(keys) + len(waits[0]) > _MOST_AT_ONCE:
            raise NotCoveredError("too many orders to try them all")
        reached = _reduced(keys, labels, done, width, steps, guides, limit)
        if skips and done % len(steps.ticks) == 0 and len(rounds) < _ROUNDS:
            rounds.append(reached)
            if len(rounds) == _ROUNDS:
                skipped, later = _repeated(rounds, done, steps)
                reached, done = reached._replace(labels=reached.labels + later), done + skipped * len(steps.ticks)
    return least


def _reduced(
    keys: Numbers, labels: Labels, done: int, width: int, steps: Steps, guides: Sequence[SmallerBounds], below: int
) -> Layer:
    """Labels that completion bounds do not exclude, after pruning and merging."""
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
def expand(run: Numbers, reached: Layer, moves: Numbers, steps: Steps, below: int) -> tuple[Numbers, Labels, int, int]:
    """The keys and labels after these moves, the least end of orders that are over, and how many were tried.

    Without those of which a micro-batch that is through its chain is not done below the value.
    """
    at, labels, found, looked, least = reached.at, reached.labels, 0, 0, _LATE
    keys, new = np.empty(2 * len(labels) + 1, np.int64), np.empty((2 * len(labels) + 1, labels.shape[1]), labels.dtype)
    after, looks = np.empty(run.shape[1], np.int64), np.empty((2, labels.shape[1]), np.int64)
    for one, n, g, may, over, key, behind in moves:
        for step in range(len(after)):
            after[step] = run[one, step] + (1 if step in (n, g) else 0)
        under_way = waiting(after, looks, steps)
        for k in range(at[one], at[one + 1]):
            if found == len(keys):
                keys, new = np.concatenate((keys, keys)), np.concatenate((new, new))
            looked, new[found], keys[found] = looked + 1, labels[k], key
            done = run_move(new[found], n, g, run[one], may, steps) + behind
            if over:
                for device in steps.counted:
                    done = max(done, np.int64(new[found, steps.columns + len(steps.room) + device]))
                least = min(least, max(0, done))
            elif done < below:
                raise_times(new[found], after, looks, under_way, steps)
                found += 1
    return keys[:found].copy(), new[:found].copy(), least, looked


def _repeated(rounds: list[Layer], done: int, steps: Steps) -> tuple[int, int]:
    """Number of rounds to skip, and how much later all times are after them.

    Moves are monotone in times. So if all labels of each state are later by some time than labels that it had a number
    of rounds before, they are later by as much again after as many further rounds.
    """
    best, most = (Fraction(0), 0, 0, 0), int(steps.number[0] - done // len(steps.ticks) - steps.admitted[0] - 1)
    run = runs_of(rounds[-1].keys, done, steps)
    for back in (back for back in _LOOK_BACK if back <= min(most, len(rounds) - 1)):
        later = _later(rounds[-1 - back], rounds[-1], run[:, 0] - run[:, -1], steps.columns)
        repeats = most // back
        best = max(best, (Fraction(later, back), -back, repeats * back, repeats * later))
    return best[2:] if best[0] > 0 else (0, 0)


def _later(before: Layer, after: Layer, under_way: Numbers, columns: int) -> int:
    """By how much all labels after are later than some before, at least; 0 where a state had none."""
    found = list[int]()
    for n, key in enumerate(after.keys):
        at = int(np.searchsorted(before.keys, key))
        if at == len(before.keys) or before.keys[at] != key:
            return 0
        counted = [*range(under_way[n]), *range(columns, after.labels.shape[1])]
        old = before.labels[before.at[at] : before.at[at + 1], counted]
        new = after.labels[after.at[n] : after.at[n + 1], counted]
        found.append(min(max(int((row - one).min()) for one in old) for row in new))
    return min(found)
