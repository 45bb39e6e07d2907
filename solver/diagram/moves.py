"""Moves possible in a state: a step, or a forward and a gradient of one device as a block. Compiled.

A state is the number of micro-batches that have done each step. So a step is possible for at most one micro-batch, the
oldest of its chain that has reached it.
"""

from __future__ import annotations

from pipesched.compiled import compiled, inlined, inner
from solver.diagram.steps import NONE, Numbers, Steps

_NOT_NEXT = -2


@compiled
def most_moves(blocks: Numbers) -> tuple[int, int]:
    """Return the most steps, and the most blocks, that can be possible moves in one state; sizes working arrays.

    `blocks` has the ticks of each block by forward and gradient step, -1 for none.
    """
    found = 0
    for step in range(len(blocks)):
        for gradient in range(len(blocks)):
            found += blocks[step, gradient] >= 0
    return len(blocks), found


@inner
def moves_from(key: int, steps: Steps, done: int, ran: Numbers, pending: Numbers, moves: Numbers) -> int:
    """Fill `moves` with the possible moves of the state `key`, one a row, and return their number.

    A move is a step, and the gradient in a block with it or -1. `done` is the number of steps done in all. Also fills,
    by step, `ran` with the micro-batches that have done it, and `pending` with the number of weight passes of its
    device that may be pending when it starts: -1 without limit, -2 if the step is not possible.
    """
    count, found = len(ran), 0
    _fill_in(key, steps, done, ran)
    for step in range(count):
        pending[step] = _may_wait(step, ran, steps)
    for step in range(count):
        if pending[step] == _NOT_NEXT:
            continue
        moves[found, 0], moves[found, 1] = step, NONE
        found += 1
        for gradient in range(count):
            if steps.blocks[step, gradient] >= 0 and pending[gradient] != _NOT_NEXT:
                moves[found, 0], moves[found, 1] = step, gradient
                found += 1
    return found


@inlined
def _fill_in(key: int, steps: Steps, done: int, ran: Numbers) -> None:
    """Fill `ran` with the number of micro-batches that have done each step, in flight or completed, in the state `key`.

    `done` is the number of steps done in all, which gives the completed micro-batches of the first chain, as these have
    no digit in the key.
    """
    if len(steps.decoded) > 0:
        _fill_in_shared(key, steps, ran)
    else:
        for step in range(len(ran)):
            ran[step] = key % steps.base[step]
            key //= steps.base[step]
    end, left = steps.last[0], done
    for step in range(len(ran)):
        if step != steps.last[step] and steps.last[step] != end:
            ran[step] += ran[steps.last[step]]
        left -= ran[step]
    for step in range(end + 1):
        ran[step] += left // (end + 1)


@inlined
def _fill_in_shared(key: int, steps: Steps, ran: Numbers) -> None:
    """Fill `ran` with the micro-batches in flight that have done each step in the state `key`.

    This is for keys in which several steps share a digit. The digit's value is a row number of `steps.decoded`. There
    is a single chain then; completed micro-batches are left out.
    """
    together, last = steps.decoded.shape[1], len(ran) - 1
    for step in range(last):
        ran[step] = steps.decoded[key % steps.base[0], step % together]
        if step % together == together - 1:
            key //= steps.base[0]
    ran[last] = 0
    for step in range(last - 1, -1, -1):
        ran[step] += ran[step + 1]


@inlined
def _may_wait(step: int, ran: Numbers, steps: Steps) -> int:
    """Return the number of weight passes that may be pending on the device of a step when that starts.

    -1 without limit. `_NOT_NEXT` if no micro-batch has arrived or memory forbids the step. Memory also forbids it if
    afterwards the remaining forwards of the oldest micro-batch there would not fit: memory of younger ones of its chain
    is in use until its gradients have run. `ran` has by step the micro-batches that have done it.
    """
    device, takes, first = steps.device[step], steps.takes[step], steps.first[step]
    if step == first:
        arrived = ran[step] < min(steps.microbatches[step], ran[steps.last[step]] + steps.in_flight[step])
    else:
        arrived = ran[step - 1] > ran[step]
    if not arrived:
        return _NOT_NEXT
    if takes <= 0 or steps.room[device] < 0:
        return -1
    oldest, memory_in_use, younger, room = ran[steps.forward[step]], 0, 0, steps.room[device] - takes
    for n in range(len(ran)):
        if steps.device[n] == device:
            memory_in_use += steps.takes[n] * ran[n]
            if steps.first[n] == first:
                younger += steps.takes[n] * max(0, ran[n] - oldest - 1)
    if memory_in_use > room or (oldest < ran[step] and younger + steps.whole[step] > room):
        return _NOT_NEXT
    if steps.waiting[device] <= 0:
        return -1
    # Not more than exist: the number is multiplied by the longest pass, and the product must fit into 64 bits.
    return int(min((room - memory_in_use) // steps.waiting[device], steps.microbatches.sum()))


@inlined
def slack_of(step: int, pending: int, ran: Numbers, steps: Steps) -> int:
    """Return the ticks of weight passes that may be pending when a step starts; -1 without limit.

    `pending` is the number of weight passes that may occupy memory (negative: any number); those that occupy none yet
    may be pending in addition. `ran` has by step the micro-batches that have done it.
    """
    if pending < 0:
        return -1
    device = steps.device[step]
    slack = pending * steps.longest[device]
    if steps.early:
        for n in range(len(ran)):
            if steps.device[n] == device:
                slack += steps.later[n] * (ran[n] - ran[steps.holder[n]])
    return int(slack)


@inlined
def none_owned(ran: Numbers, steps: Steps) -> bool:
    """True if times count from the first start on one device (`steps.owner`), and that device has run nothing yet.

    `ran` has by step the micro-batches that have done it.
    """
    for step in range(len(ran)):
        if steps.device[step] == steps.owner and ran[step] > 0:
            return False
    return steps.owner != NONE


@inlined
def is_over_with(step: int, gradient: int, ran: Numbers, steps: Steps) -> bool:
    """True if the order is complete after this move: all steps have run, or all steps of the device whose time counts.

    `gradient` is the gradient in a block with `step`, or -1; `ran` has by step the micro-batches that have done it
    before the move.
    """
    for n in range(len(ran)):
        now = ran[n] + (n in (step, gradient))
        if steps.owner in (NONE, steps.device[n]) and now < steps.microbatches[n]:
            return False
    return True


@inner
def fill_waiting(ran: Numbers, steps: Steps, waiting: Numbers) -> int:
    """Fill `waiting` with a row for each step that can be next for some micro-batch, and return their number.

    A row has the step, and the begin and end of the range of label times of micro-batches that have arrived at it; the
    range is empty for the first step of a chain, which is in a row while micro-batches have not begun. `ran` has by
    step the micro-batches that have done it. `raise_times` needs these rows for all labels of a state.
    """
    found = 0
    for step in range(len(ran)):
        since = until = 0
        if step != steps.first[step]:
            since = steps.slot[step] + ran[step] - ran[steps.last[step]]
            until = since + ran[step - 1] - ran[step]
        if since < until or (step == steps.first[step] and ran[step] < steps.microbatches[step]):
            waiting[found, 0], waiting[found, 1], waiting[found, 2] = step, since, until
            found += 1
    return found


def in_flight_of(key: int, steps: Steps) -> int:
    """Return how many micro-batches of the only chain are between its first and its last step in the state `key`."""
    if not len(steps.decoded):
        return key % int(steps.base[0])
    found = 0
    for base in steps.base.tolist():
        found += int(steps.decoded[key % base].sum())
        key //= base
    return found
