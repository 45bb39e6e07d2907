"""What may be next where an order of steps has come: a step, or a forward and a gradient of a device as one block.

A state is told by how many micro-batches in flight have done each step. So a step has one micro-batch that may be next
with it at most, and the gradient of a block is that of an older one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from solver.bounds.crossing_steps.steps import Numbers, Steps

# For the gradient of a move without one, and for a step that may not be next.
NONE = -1
_NOT_NEXT = -2


@njit(cache=True, nogil=True)
def most_moves(blocks: Numbers) -> tuple[int, int]:
    """How many steps and how many blocks may be next at most."""
    return len(blocks), int((blocks >= 0).sum())


@njit(cache=True, nogil=True)
def moves_from(
    key: int, steps: Steps, blocks: Numbers, done: int, ran: Numbers, pending: Numbers, moves: Numbers
) -> int:
    """Fill in how many in flight have done each step, and what may be next; how many moves that are.

    A move is a step, and the gradient in a block with it or -1.
    """
    count, found = len(ran), 0
    _next_steps(key, steps, done, ran, pending)
    for step in range(count):
        if pending[step] == _NOT_NEXT:
            continue
        moves[found, 0], moves[found, 1] = step, NONE
        found += 1
        for gradient in range(step + 1, count):
            if blocks[step, gradient] >= 0 and pending[gradient] != _NOT_NEXT:
                moves[found, 0], moves[found, 1] = step, gradient
                found += 1
    return found


@njit(cache=True, nogil=True)
def raised_by(steps: Steps) -> Numbers:
    """By how much each step raises the key of a state; the last one takes a micro-batch out of it."""
    found = np.append(steps.place[1:], -steps.place.sum())
    return found.astype(np.int64)


@njit(cache=True, nogil=True)
def _next_steps(key: int, steps: Steps, done: int, ran: Numbers, pending: Numbers) -> None:
    """Fill in how many micro-batches in flight have done each step, and how many weight passes may wait when it starts.

    The latter is -1 where memory does not say, and `_NOT_NEXT` where the step may not be next: nothing comes to it, or
    memory has no place for it, or would have none for the forwards of the oldest micro-batch that has some left.
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
