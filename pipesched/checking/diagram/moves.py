"""Moves of an order and the times they lead to: the rules of time and memory, compiled by Numba.

A label is a row of times: chain by chain the end of the last step of each micro-batch in flight; then by device the
time when it can start its next step; then by device the time when it has run all that it could, weight passes included.
"""

from __future__ import annotations

import numpy as np

from pipesched.checking.diagram.model import Labels, Numbers
from pipesched.checking.diagram.walk import NONE, NOTHING, Steps, weights_of
from pipesched.compiled import compiled, inner

# No step, or one that cannot be next; one elsewhere before the owner's first; any weight work may be pending.
_NO, LONG_AGO, _ANY = -3, -2, -1
_LATE = 2**62


def moves_from(keys: Numbers, run: Numbers, steps: Steps) -> Numbers:
    """Return the possible moves of all states as rows.

    A row has the number of the state, a step, and the gradient in a block with it, or -1; then the ticks of weight work
    that may be pending, 1 if the order is over, the key of the next state, and the time after the last step of a
    micro-batch that ends its chain. `keys` are the states' keys, `run` has by state and step how often the step has
    run. Rows are sorted by state; of a state blocks come last.
    """
    return all_moves(keys, run, weights_of(steps), np.argwhere(steps.together >= 0), steps)


@compiled
def all_moves(keys: Numbers, run: Numbers, weights: Numbers, blocks: Numbers, steps: Steps) -> Numbers:
    """Return the rows of `moves_from`.

    `weights` has by step what running it once adds to the key of a state, `blocks` a row for each possible block: a
    forward and a gradient.
    """
    size, found = run.shape[1], 0
    moves, may = np.empty((len(keys) * (size + len(blocks)), 7), np.int64), np.empty(size, np.int64)
    for one in range(len(keys)):
        fill_admissible_weights(may, run[one], steps)
        left, before_owner = 0, steps.owner != NONE
        for n in range(size):
            if is_awaited(n, steps):
                left += steps.number[n] - run[one, n]
            before_owner &= steps.device[n] != steps.owner or run[one, n] == 0
        for which in range(size + len(blocks)):
            n, g = (which, NONE) if which < size else (blocks[which - size, 0], blocks[which - size, 1])
            if may[n] == _NO or (g >= 0 and may[g] == _NO):
                continue
            awaited, key, tail = is_awaited(n, steps), keys[one] + weights[n], steps.tail[n]
            if g >= 0:
                awaited, key = awaited + is_awaited(g, steps), key + weights[g]
                tail = max(tail, steps.tail[g])
            pending = LONG_AGO if before_owner and steps.device[n] != steps.owner else may[n]
            row = moves[found]
            row[0], row[1], row[2], row[3] = one, n, g, pending
            row[4], row[5], row[6] = left == awaited, key, max(tail, NOTHING)
            found += 1
    return moves[:found].copy()


@inner
def is_awaited(n: int, steps: Steps) -> int:
    """Return 1 if the order is not over before step `n` has run as often as it can, else 0."""
    return 1 if steps.owner in (NONE, steps.device[n]) else 0


@inner
def fill_admissible_weights(may: Numbers, run: Numbers, steps: Steps) -> None:
    """Fill `may` by step with the ticks of weight work that may be pending, or `_NO` where the step is not possible.

    It is as much as memory has room for, plus that of gradients whose own memory is still in use as their activation;
    any (`_ANY`) where memory does not matter. A forward that leaves no memory for earlier micro-batches leads nowhere:
    activations of a chain's micro-batches after the first one with forwards left on the device stay in memory until
    that one's gradient. `run` has by step how often the step has run.
    """
    for n in range(len(run)):
        first, last, device = steps.first[n], steps.last[n], steps.device[n]
        ahead = min(steps.number[n], run[last] + steps.admitted[n]) if n == first else run[n - 1]
        may[n] = _ANY if run[n] < ahead else _NO
        room = steps.room[device]
        if may[n] == _NO or steps.memory[n] <= 0 or room < 0:
            continue
        in_use, early, runs, oldest, needed = steps.memory[n], 0, 0, run[n], steps.memory[n]
        for k in range(len(run)):
            runs += steps.number[k]
            if steps.device[k] == device:
                in_use += run[k] * steps.memory[k]
                early += (run[k] - run[steps.holder[k]]) * steps.after[k]
                if first <= k <= last and 2 * k < first + last:  # the last forward of the chain on the device
                    oldest, needed = run[k], needed + steps.memory[k]
        for k in range(first, last + 1):
            if steps.device[k] == device:
                needed += max(0, run[k] - oldest - 1) * steps.memory[k]
        if in_use > room or (oldest < run[n] and needed > room):
            may[n] = _NO
        elif steps.open_[device] > 0:
            # Never more than run at all, so that their time fits into 64 bits.
            may[n] = min((room - in_use) // steps.open_[device], runs) * steps.weight[device] + early


@inner
def waiting(run: Numbers, looks: Numbers, steps: Steps) -> int:
    """Fill `looks` with a column for each micro-batch under way, and return their number.

    A micro-batch is under way between the first and the last step of its chain. Row 0 is the column of its time in a
    label, row 1 its next step. `run` has by step how often it has run.
    """
    found = 0
    for last in range(len(run)):
        if steps.last[last] == last:
            n = last
            for which in range(run[steps.first[last]] - run[last]):
                while run[n - 1] <= run[last] + which:
                    n -= 1
                looks[0, found], looks[1, found] = steps.column[last] + which, n
                found += 1
    return found


@inner
def place_of(n: int, run: Numbers, steps: Steps) -> int:
    """Return the column of a label that has the time of the micro-batch that runs step `n` next.

    That time is the end in ticks of the step before. `run` has by step how often it has run. Not for a chain's first
    step.
    """
    return int(steps.column[n] + run[n] - run[steps.last[n]])


@inner
def run_move(label: Labels, n: int, g: int, run: Numbers, may: int, steps: Steps) -> int:
    """Change a label in place by step `n`, or by the block of steps `n` and `g` (else -1).

    Return the move's end in ticks. The move starts when its device is free and what it needs has arrived, and no sooner
    than earlier moves started. `run` has by step how often it ran before; `may` are the ticks of weight work that may
    be pending when the move starts (-1: any). With `LONG_AGO` the move may have run before the owner's time begins: it
    ends at `steps.past`, and devices keep their times.
    """
    free, device, end = steps.columns, steps.device[n], np.int64(steps.past)
    if may != LONG_AGO:
        over = free + len(steps.room) + device
        start = max(np.int64(label[free + device]), 0 if steps.owner >= 0 else steps.past)
        for step in (n, g):
            if step >= 0:
                ended = steps.past if step == steps.first[step] else label[place_of(step, run, steps)]
                start = max(start, ended + steps.lag[step])
        if may >= 0:
            start = max(start, label[over] - may)
        end = start + (steps.ticks[n] if g < 0 else steps.together[n, g])
        for place in range(free, len(label)):
            label[place] = max(np.int64(label[place]), start)
        label[free + device] = end
        label[over] += end - start + (steps.after[n] if g < 0 else 0)
    for step in (n, g):
        if step >= 0:
            label[place_of(step, run, steps)] = end
        if step >= 0 and step == steps.last[step]:  # the first micro-batch of its chain is through
            final = steps.column[step] + steps.admitted[step] - 1
            for place in range(steps.column[step], final):
                label[place] = label[place + 1]
            label[final] = 0
    return int(end)


@inner
def raise_times(label: Labels, run: Numbers, looks: Numbers, count: int, steps: Steps) -> None:
    """Raise a label's times in place to the latest times with which no remaining step runs later.

    A micro-batch waits for its next device, and a device for the first arrival: of a micro-batch in flight, or of the
    next one of a chain. Until then the device runs pending weight passes. Labels that differ only in times that decide
    nothing become equal by this. `run` has by step how often it has run. `looks` has for each of the `count`
    micro-batches in flight the column of its time in a label (row 0) and its next step (row 1).
    """
    free = steps.columns
    for which in range(count):
        place, n = looks[0, which], looks[1, which]
        label[place] = max(np.int64(label[place]), label[free + steps.device[n]] - steps.lag[n])
    for one in range(len(steps.room)):
        soonest, n = np.int64(_LATE), 0
        for which in range(count):
            if steps.soonest[looks[1, which], one] >= 0:
                soonest = min(soonest, label[looks[0, which]] + steps.soonest[looks[1, which], one])
        while n < len(run):  # the first step of each chain
            if run[n] < steps.number[n] and steps.soonest[n, one] >= 0:
                begins = max(np.int64(steps.past), label[free + steps.device[n]] - steps.lag[n])
                soonest = min(soonest, begins + steps.soonest[n, one])
            n = steps.last[n] + 1
        over = free + len(steps.room) + one
        if soonest < _LATE:
            label[free + one] = max(np.int64(label[free + one]), soonest)
        label[over] = max(label[over], label[free + one])
