"""The layers of a diagram, from nothing run to all: every move of every label, then those that are kept distinct."""

from __future__ import annotations

import numpy as np

from pipesched.checking.diagram.completion import FOREVER, back_over, key_weights, moves_from
from pipesched.checking.diagram.guide import Guide, look_ahead, no_guide
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.moves import Labels, all_over, allowed, raise_times, ready_for, run_move, waiting
from pipesched.checking.diagram.repetition import ROUNDS, Reached, repeated, runs_of
from pipesched.checking.diagram.walk import Numbers, Steps, Walk
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled, inner

# Labels beyond which the check would take minutes, and at once, gigabytes.
_MOST, _MOST_AT_ONCE = 150_000_000, 4_000_000
_LATE = 2**60


def least_end(walk: Walk, width: int, guide: Guide | None = None, below: int | None = None) -> int:
    """When the devices that count have run all at the earliest, or the value below which labels are followed."""
    steps, limit, say = walk.steps, _LATE if below is None else below, guide or no_guide(walk.steps)
    total = steps.microbatches * len(steps.ticks)
    skips = bool(guide is None and (steps.together < 0).all())
    columns = steps.admitted + 2 * len(steps.room)
    kind_of_number = np.int32 if walk.longest < FOREVER else np.int64
    reached = Reached(np.zeros(1, np.int64), np.array([0, 1]), np.zeros((1, columns), kind_of_number))
    waits, done, looked, rounds = (reached.keys[:0], reached.labels[:0]), 0, 0, list[Reached]()
    while done + 1 < total:
        near, behind, seen = _next(reached, done, steps, say, limit)
        keys, labels = np.concatenate([near[0], waits[0]]), np.concatenate([near[1], waits[1]])
        waits, done, looked = behind, done + 1, looked + seen
        if looked > _MOST or len(keys) + len(waits[0]) > _MOST_AT_ONCE:
            raise NotCoveredError("too many orders to try them all")
        if not len(keys) and not len(waits[0]):
            return limit
        reached = _reduced(keys, labels, width)
        if skips and done % len(steps.ticks) == 0 and len(rounds) < ROUNDS:
            rounds.append(reached)
            if len(rounds) == ROUNDS:
                most = steps.microbatches - done // len(steps.ticks) - steps.admitted - 1
                skipped, later = repeated(rounds, done, most, steps)
                reached, done = reached._replace(labels=reached.labels + later), done + skipped * len(steps.ticks)
    (_, labels), _, _ = _next(reached, done, steps, no_guide(steps), _LATE)
    ends = [latest_end(label, walk.counted, steps) for label in labels]
    return min(limit, *ends) if ends else limit


Moved = tuple[Numbers, Labels]


def _next(reached: Reached, done: int, steps: Steps, guide: Guide, limit: int) -> tuple[Moved, Moved, int]:
    """The keys and labels after each step that may be next, and after each block, which are a step further."""
    run = runs_of(reached.keys, done, steps)
    may = allowed(run, steps)
    moves = moves_from(may, steps)
    alone, weights = moves[:, 2] < 0, key_weights(steps)
    *near, seen = expand(run, reached, may, moves[alone], weights, steps, guide, limit)
    if alone.all():
        return (near[0], near[1]), (near[0][:0], near[1][:0]), seen
    *far, more = expand(run, reached, may, moves[~alone], weights, steps, guide, limit)
    return (near[0], near[1]), (far[0], far[1]), seen + more


def _reduced(keys: Numbers, labels: Labels, width: int) -> Reached:
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    at = np.flatnonzero(np.diff(keys, prepend=-1))
    counts, kept = told_apart(labels, order, np.append(at, len(keys)), width)
    return Reached(keys[at], np.append(0, np.cumsum(counts)), kept)


@compiled
def expand(
    run: Numbers,
    reached: Reached,
    may: Numbers,
    moves: Numbers,
    weights: Numbers,
    steps: Steps,
    guide: Guide,
    limit: int,
) -> tuple[Numbers, Labels, int]:
    """The keys and labels after these moves, of those that may end below the limit; how many were tried."""
    at, labels = reached.at, reached.labels
    size, found, looked = 2 * len(labels) + 1, 0, 0
    keys, new = np.empty(size, np.int64), np.empty((size, labels.shape[1]), labels.dtype)
    comes, after = np.zeros(steps.admitted, np.int64), np.zeros(run.shape[1], np.int64)
    follows = np.zeros(steps.admitted + 2 * len(steps.room), np.int64)
    before, say = np.zeros_like(follows), len(guide.steps) > 0
    for one, n, g in moves:
        after[:] = run[one]
        after[n] += 1
        if g >= 0:
            after[g] += 1
        under_way, key = comes[: waiting(after, comes)], ((after - after[-1]) * weights).sum()
        if not look_ahead(follows, after, under_way, steps, guide):
            continue
        if say:  # what follows the times before the move: most labels are left out without one
            back_over(before, follows, n, g, run[one], may[one, n], steps)
        for k in range(at[one], at[one + 1]):
            if say and not _all_below(labels[k], before, limit):
                looked += 1
                continue
            ready = ready_for(labels[k], n, g, run[one], steps)
            if found == size:
                size *= 2
                keys, new = np.concatenate((keys, keys)), np.concatenate((new, new))
            new[found], looked = labels[k], looked + 1
            run_move(new[found], n, g, run[one], ready, may[one, n], steps)
            raise_times(new[found], under_way, after[0] < steps.microbatches, steps)
            if not say or _all_below(new[found], follows, limit):
                keys[found] = key
                found += 1
    return keys[:found].copy(), new[:found].copy(), looked


@inner
def _all_below(label: Labels, follows: Numbers, limit: int) -> bool:
    """Whether each time and what follows it come to less than the limit."""
    for place in range(len(follows)):  # noqa: SIM110 - Numba compiles no generator
        if label[place] + follows[place] >= limit:
            return False
    return True


@compiled
def latest_end(label: Labels, counted: int, steps: Steps) -> int:
    """When the first `counted` devices have run all."""
    latest = 0
    for device in range(counted):
        latest = max(latest, all_over(label, device, steps))
    return latest
