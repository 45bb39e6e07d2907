"""Moves of an order and the times they lead to: the rules of time and memory, compiled by Numba.

A label is a row of times: chain by chain the end of the last step of each micro-batch in flight; then by device the
time when it can start its next step; then by device the time when it has run all that it could, weight passes included.
"""

from __future__ import annotations

import numpy as np

from pipesched.checking.diagram.model import Labels, Numbers
from pipesched.checking.diagram.walk import NONE, NOTHING, Steps, weights_of
from pipesched.compiled import inner

# No step, or one that cannot be next; one elsewhere before the owner's first; any weight work may be pending.
_NO, LONG_AGO, _ANY = -3, -2, -1
_LATE = 2**62


def moves_from(keys: Numbers, run: Numbers, steps: Steps) -> Numbers:
    """Return the possible moves of all states as rows.

    A row has the number of the state, a step, and the gradient in a block with it, or -1; then the ticks of weight work
    that may be pending, 1 if the order is over, the key of the next state, and the time after the last step of a
    micro-batch that ends its chain. `keys` are the states' keys, `run` has by state and step how often the step has
    run. Rows are sorted by state.
    """
    may, of_owner = _admissible_weights(run, steps), steps.device == steps.owner
    alone = np.argwhere(may > _NO)
    found = [np.column_stack([alone, np.full(len(alone), NONE)])]
    for n, g in np.argwhere(steps.together >= 0):
        both = np.argwhere((may[:, n] > _NO) & (may[:, g] > _NO))
        found.append(np.column_stack([both, np.full_like(both, n), np.full_like(both, g)]))
    moves = np.concatenate(found)
    one, n, g = moves[np.argsort(moves[:, 0], kind="stable") if len(found) > 1 else slice(None)].T
    # Last what a step counts that there is not.
    ending, more = np.append(of_owner | (steps.owner == NONE), False), np.append(weights_of(steps), 0)
    tails, left = np.append(steps.tail, NOTHING), (steps.number - run)[:, ending[:-1]].sum(axis=1)
    over = left[one] == ending[n].astype(np.int64) + ending[g]
    long_ago = (steps.owner != NONE) & (run @ of_owner == 0)[one] & ~of_owner[n]
    weights = np.where(long_ago, LONG_AGO, may[one, n])
    return np.column_stack([one, n, g, weights, over, keys[one] + more[n] + more[g], np.maximum(tails[n], tails[g])])


def _admissible_weights(run: Numbers, steps: Steps) -> Numbers:
    """Return by state and step the ticks of weight work that may be pending, or `_NO` where the step is not possible.

    It is as much as memory has room for, plus that of gradients whose own memory is still in use as their activation. A
    forward that leaves no memory for earlier micro-batches leads nowhere: activations of a chain's micro-batches after
    the first one with forwards left on the device stay in memory until that one's gradient. `run` has by state and step
    how often the step has run.
    """
    ahead, turn = np.roll(run, 1, axis=1), np.arange(run.shape[1])
    begins = np.minimum(steps.number, run[:, steps.last] + steps.admitted)
    may = np.where(run < np.where(turn == steps.first, begins, ahead), _ANY, _NO)
    for n in np.flatnonzero((steps.memory > 0) & (steps.room[steps.device] >= 0)):
        on_device, (room, open_) = (
            steps.device == steps.device[n],
            (one[steps.device[n]] for one in (steps.room, steps.open_)),
        )
        chain = on_device & (steps.first == steps.first[n])
        down = np.flatnonzero(chain & (2 * turn < steps.first + steps.last))
        oldest, in_use = run[:, down[-1]], run[:, on_device] @ steps.memory[on_device] + steps.memory[n]
        needed = np.maximum(0, run[:, chain] - oldest[:, None] - 1) @ steps.memory[chain] + steps.memory[down].sum()
        no_room = (oldest < run[:, n]) & (needed + steps.memory[n] > room)
        # Never more than run at all, so that their time fits into 64 bits.
        weights = _ANY
        if open_ > 0:
            early = (run[:, on_device] - run[:, steps.holder[on_device]]) @ steps.after[on_device]
            weights = np.minimum((room - in_use) // open_, steps.number.sum()) * steps.weight[steps.device[n]] + early
        may[:, n] = np.where((may[:, n] == _NO) | (in_use > room) | no_room, _NO, weights)
    return may


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
