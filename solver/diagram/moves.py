"""What may be next where an order of steps has come: a step, or a forward and a gradient of a device as one block.

A state is told by how many micro-batches in flight have done each step. So a step has one micro-batch that may be next
with it at most, and the gradient of a block is that of an older one. Compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.compiled import compiled, inner
from solver.diagram.steps import NONE, Numbers, Steps

_NOT_NEXT = -2


@compiled
def most_moves(blocks: Numbers) -> tuple[int, int]:
    """How many steps and how many blocks may be next at most."""
    found = 0
    for step in range(len(blocks)):
        for gradient in range(len(blocks)):
            found += blocks[step, gradient] >= 0
    return len(blocks), found


@compiled
def raised_by(steps: Steps) -> Numbers:
    """By how much each step raises the key of a state; the last one takes a micro-batch out of it."""
    last = len(steps.place) - 1
    found = np.zeros(last + 1, np.int64)
    for step in range(last):
        found[step] = steps.place[step + 1]
        found[last] -= steps.place[step + 1]
    return found


@compiled
def moves_from(key: int, steps: Steps, done: int, ran: Numbers, pending: Numbers, moves: Numbers) -> int:
    """Fill in how many in flight have done each step, and what may be next; how many moves that are.

    A move is a step, and the gradient in a block with it or -1. `pending` is how many weight passes of its device may
    wait when a step starts; -1 where memory does not say, -2 where it may not be next.
    """
    count, found = len(ran), 0
    _next_steps(key, steps, done, ran, pending)
    for step in range(count):
        if pending[step] == _NOT_NEXT:
            continue
        moves[found, 0], moves[found, 1] = step, NONE
        found += 1
        for gradient in range(step + 1, count):
            if steps.blocks[step, gradient] >= 0 and pending[gradient] != _NOT_NEXT:
                moves[found, 0], moves[found, 1] = step, gradient
                found += 1
    return found


def may_wait(steps: Steps, at: Sequence[int], begun: int, step: int) -> int:
    """How many weight passes may wait when a step starts; -1 where memory does not say, -2 where it may not be next.

    `at` is how many steps each micro-batch in flight has done, of so many that have `begun`.
    """
    count, through = len(steps.ticks), begun - len(at)
    key = sum(int(steps.place[1 : one + 1].sum()) for one in at)
    pending, moves = np.zeros(count, np.int64), np.empty((sum(most_moves(steps.blocks)), 2), np.int64)
    moves_from(key, steps, through * count + sum(at), np.zeros(count, np.int64), pending, moves)
    return int(pending[step])


@inner
def positions_of(key: int, steps: Steps, at: Numbers) -> int:
    """Fill in how many steps each micro-batch in flight has done, the oldest first; how many there are."""
    base = steps.in_flight + 1
    left = key
    for place in range(len(at)):
        at[place] = 0
    for _ in range(1, len(steps.ticks)):
        for place in range(left % base):
            at[place] += 1
        left //= base
    return key % base


@compiled
def _next_steps(key: int, steps: Steps, done: int, ran: Numbers, pending: Numbers) -> None:
    """A step may not be next where nothing comes to it, or memory has no place for it.

    Nor where memory would have none after it for the forwards of the oldest micro-batch that has some left there.
    """
    count = len(ran)
    for step in range(count - 1):
        ran[step] = key % (steps.in_flight + 1)
        key //= steps.in_flight + 1
    ran[count - 1] = 0
    begun = (done - ran.sum()) // count + ran[0]
    for step in range(count):
        device, takes = steps.device[step], steps.takes[step]
        if step == 0:
            pending[step] = -1 if begun < steps.microbatches and ran[0] < steps.in_flight else _NOT_NEXT
        else:
            pending[step] = -1 if ran[step - 1] > ran[step] else _NOT_NEXT
        if pending[step] == _NOT_NEXT or takes <= 0 or steps.room[device] < 0:
            continue
        oldest, held, younger, room = ran[steps.forward[device]], 0, 0, steps.room[device] - takes
        for n in range(count):
            if steps.device[n] == device:
                held += steps.takes[n] * ran[n]
                younger += steps.takes[n] * max(0, ran[n] - oldest - 1)
        if held > room or (oldest < ran[step] and younger + steps.whole[device] > room):
            pending[step] = _NOT_NEXT
        elif steps.waiting[device] > 0:
            pending[step] = (room - held) // steps.waiting[device]
