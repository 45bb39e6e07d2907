"""What the labels of a layer become, compiled: by a step more, or by a block of a forward and a gradient.

A block starts when both may, in memory that still holds what its gradient gives back, and both end with it. Its
backward is run in one go, so that no weight pass is left of it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from solver.bounds.crossing_steps.layers import Layer
from solver.bounds.crossing_steps.moves import NEVER, positions_of, raise_times, take_step, waiting_at
from solver.bounds.crossing_steps.steps import Numbers, Steps

_NONE = -1


@njit(cache=True, nogil=True)
def successors_with_blocks(
    layer: Layer, since: int, until: int, steps: Steps, blocks: Numbers, done: int
) -> tuple[Numbers, Numbers, Numbers, Numbers, int]:
    """Keys and labels of some states after one step more, then of those after a block; the least value at the end."""
    most, width = steps.in_flight, layer.labels.shape[1]
    size = _counted(layer, since, until, steps, blocks, done)
    keys, labels = np.empty(size[0], np.int64), np.empty((size[0], width), np.int64)
    far_keys, far = np.empty(size[1], np.int64), np.empty((size[1], width), np.int64)
    at, after = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    moves = np.empty((_most_moves(steps), 3), np.int64)
    found, found_far, ended = 0, 0, np.int64(NEVER)
    for state in range(since, until):
        flying = positions_of(layer.keys[state], steps, at)
        begun = _begun(at, flying, steps, done)
        for move in moves[: _moves(at, flying, begun, steps, blocks, moves)]:
            one, other = move[0], move[1]
            now_begun = begun + (one == flying)
            through = _through(at, flying, one, other, steps)
            key = layer.keys[state] + steps.place[1 if one == flying else (at[one] + 1) % len(steps.ticks)]
            if other != _NONE:
                key += steps.place[(at[other] + 1) % len(steps.ticks)]
            key -= steps.place.sum() if through else 0
            left = positions_of(key, steps, after)
            for label in range(layer.first[state], layer.first[state + 1]):
                new = labels[found] if other == _NONE else far[found_far]
                new[:] = layer.labels[label]
                _advance(new, move, at, flying, steps, blocks)
                if through:
                    new[: most - 1] = new[1:most].copy()
                    new[most - 1] = 0
                if left == 0 and now_begun == steps.microbatches:
                    ends = new[most + len(steps.room) :]
                    ended = min(ended, ends.max() if steps.makespan else ends[0])
                    continue
                raise_times(new, after, left, now_begun < steps.microbatches, steps)
                if other == _NONE:
                    keys[found] = key
                    found += 1
                else:
                    far_keys[found_far] = key
                    found_far += 1
    return keys[:found], labels[:found], far_keys[:found_far], far[:found_far], int(ended)


@njit(cache=True, nogil=True)
def _most_moves(steps: Steps) -> int:
    """At each step one micro-batch may be next, at most; each forward may be in a block with each gradient."""
    return int(len(steps.ticks) + (len(steps.ticks) // 2) ** 2)


@njit(cache=True, nogil=True)
def _counted(layer: Layer, since: int, until: int, steps: Steps, blocks: Numbers, done: int) -> Numbers:
    """How many labels come of some states at most, by a step and by a block."""
    at, moves = np.zeros(steps.in_flight + 1, np.int64), np.empty((_most_moves(steps), 3), np.int64)
    size = np.zeros(2, np.int64)
    for state in range(since, until):
        flying = positions_of(layer.keys[state], steps, at)
        count = _moves(at, flying, _begun(at, flying, steps, done), steps, blocks, moves)
        in_blocks = (moves[:count, 1] != _NONE).sum()
        labels = layer.first[state + 1] - layer.first[state]
        size += labels * np.array([count - in_blocks, in_blocks])
    return size


@njit(cache=True, nogil=True)
def _begun(at: Numbers, flying: int, steps: Steps, done: int) -> int:
    """How many micro-batches have begun: those that are through have done all steps."""
    return int((done - at[:flying].sum()) // len(steps.ticks) + flying)


@njit(cache=True, nogil=True)
def _moves(at: Numbers, flying: int, begun: int, steps: Steps, blocks: Numbers, moves: Numbers) -> int:
    """Fill in what may be next, and how many that are: a micro-batch, that of the gradient in a block with it or -1.

    Last, how many weight passes of the device may wait, as for crossings of steps.
    """
    found = 0
    for one in range(flying + 1):
        if not _in_turn(at, flying, one) or (one == flying and _no_more(flying, begun, steps)):
            continue
        step = 0 if one == flying else at[one]
        pending = waiting_at(steps, at, flying, one, step)
        if pending == -2:
            continue
        moves[found, 0], moves[found, 1], moves[found, 2] = one, _NONE, pending
        found += 1
        for other in range(one):
            if blocks[step, at[other]] >= 0 and _in_turn(at, flying, other):
                moves[found, 0], moves[found, 1], moves[found, 2] = one, other, pending
                found += 1
    return found


@njit(cache=True, nogil=True)
def _no_more(flying: int, begun: int, steps: Steps) -> bool:
    """Whether no micro-batch may begin."""
    return bool(begun == steps.microbatches or flying == steps.in_flight)


@njit(cache=True, nogil=True)
def _in_turn(at: Numbers, flying: int, one: int) -> bool:
    """Whether the one before has come further."""
    return bool(one in (0, flying) or at[one - 1] > at[one])


@njit(cache=True, nogil=True)
def _through(at: Numbers, flying: int, one: int, other: int, steps: Steps) -> bool:
    """Whether the oldest micro-batch takes its last step."""
    return bool(flying > 0 and (one == 0 or other == 0) and at[0] == len(steps.ticks) - 1)


@njit(cache=True, nogil=True)
def _advance(label: Numbers, move: Numbers, at: Numbers, flying: int, steps: Steps, blocks: Numbers) -> None:
    """Change a label by a step or by a block."""
    one, other, pending = move
    step = 0 if one == flying else at[one]
    if other == _NONE:
        take_step(label, one, step, pending, steps, one < flying)
        return
    devices, most, device = len(steps.room), steps.in_flight, steps.device[step]
    free, done = label[most : most + devices], label[most + devices :]
    start = max(free[device], label[other] + steps.lag[at[other]])
    if one < flying:
        start = max(start, label[one] + steps.lag[step])
    if pending >= 0:
        start = max(start, done[device] - pending * steps.longest[device])
    for each in range(devices):
        free[each] = max(free[each], start)
        done[each] = max(done[each], start)
    ticks = blocks[step, at[other]]
    free[device] = label[one] = label[other] = start + ticks
    done[device] += ticks
