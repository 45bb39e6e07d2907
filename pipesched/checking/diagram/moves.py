"""What an order can do next, and the times that it leads to: the rules of time and memory, compiled.

A label's times stand in a row: chain by chain when the last step of each micro-batch under way ended; when each device
can start the next step; when it has run all that it could, weight passes too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipesched.checking.diagram.walk import Numbers, Steps
from pipesched.compiled import compiled, inner

Labels = np.ndarray[Any, np.dtype[Any]]

# No step, or one that cannot be next; one before the owner's first; any number of weight passes may be open; later than
# any time.
NO, LONG_AGO, _ANY, _LATE = -3, -2, -1, 2**62


@compiled
def allowed(run: Numbers, steps: Steps) -> Numbers:
    """By state and step: how many weight passes may be open when it starts, or what else it is, as above."""
    found = np.full(run.shape, NO, np.int64)
    for one in range(len(run)):
        begun = steps.owner < 0
        for n in range(run.shape[1]):
            begun = begun or (steps.device[n] == steps.owner and run[one, n] > 0)
        for n in range(run.shape[1]):
            if n == steps.first[n]:
                ahead = min(steps.number[n], run[one, steps.last[n]] + steps.admitted[n])
            else:
                ahead = run[one, n - 1]
            if run[one, n] < ahead:
                found[one, n] = _open_beside(run[one], n, steps)
                if found[one, n] > NO and not begun and steps.device[n] != steps.owner:
                    found[one, n] = LONG_AGO
    return found


@inner
def _open_beside(run: Numbers, n: int, steps: Steps) -> int:
    """Beside all that its device holds; and a forward that leaves no room for those before it leads nowhere.

    Micro-batches of a chain behind its first that has forwards left on the device hold what they do until that one's
    gradient.
    """
    device = steps.device[n]
    room = steps.room[device]
    if steps.memory[n] <= 0 or room < 0:
        return _ANY
    held, first, needed = steps.memory[n], np.int64(0), np.int64(0)
    for other in range(len(run)):
        if steps.device[other] == device:
            held += steps.memory[other] * run[other]
            if steps.first[other] == steps.first[n] and 2 * other < steps.first[n] + steps.last[n]:
                first, needed = run[other], needed + steps.memory[other]
    needed += steps.memory[n] if first < run[n] else 0
    for other in range(steps.first[n], steps.last[n] + 1):
        if steps.device[other] == device:
            needed += steps.memory[other] * max(0, run[other] - first - 1)
    if held > room or (first < run[n] and needed > room):
        return NO
    return int((room - held) // steps.open_[device]) if steps.open_[device] > 0 else _ANY


def moves_from(may: Numbers, steps: Steps) -> Numbers:
    """What may be next: a state's number, a step, and the gradient in a block with it, or -1."""
    alone = np.argwhere(may > NO)
    found = [np.column_stack([alone, np.full(len(alone), -1)])]
    for n, g in np.argwhere(steps.together >= 0):
        which = np.flatnonzero((may[:, n] > NO) & (may[:, g] > NO))
        found.append(np.column_stack([which, np.full(len(which), n), np.full(len(which), g)]))
    return np.concatenate(found)


@inner
def run_after(after: Numbers, run: Numbers, n: int, g: int, steps: Steps) -> bool:
    """Fill in what has run after a move; whether the order is over then."""
    left = False
    for step in range(len(run)):
        after[step] = run[step] + (1 if step in (n, g) else 0)
        left = left or (after[step] < steps.number[step] and steps.owner in (-1, steps.device[step]))
    return not left


@inner
def waiting(run: Numbers, places: Numbers, comes: Numbers, steps: Steps) -> int:
    """Fill in where the time of each micro-batch under way stands, and its next step; how many these are."""
    found = 0
    for last in range(len(run)):
        if steps.last[last] == last:
            n = last
            for which in range(run[steps.first[last]] - run[last]):
                while run[n - 1] <= run[last] + which:
                    n -= 1
                places[found], comes[found] = steps.column[last] + which, n
                found += 1
    return found


@inner
def place_of(n: int, run: Numbers, steps: Steps) -> int:
    """Where the time of the micro-batch stands that runs a step next."""
    return int(steps.column[n] + run[n] - run[steps.last[n]])


@inner
def run_move(label: Labels, n: int, g: int, run: Numbers, may: int, steps: Steps) -> int:
    """Change times by a step or block; when it ends. Moves are taken by their starts: no other starts before."""
    free, device, end = steps.columns, steps.device[n], np.int64(steps.past)
    if may != LONG_AGO:
        over = free + len(steps.room) + device
        start = max(np.int64(label[free + device]), 0 if steps.owner >= 0 else steps.past)
        for step in (n, g):
            if step >= 0:
                ended = steps.past if step == steps.first[step] else label[place_of(step, run, steps)]
                start = max(start, ended + steps.lag[step])
        if may >= 0:
            start = max(start, label[over] - may * steps.weight[device])
        end = start + (steps.ticks[n] if g < 0 else steps.together[n, g])
        for place in range(free, len(label)):
            label[place] = max(np.int64(label[place]), start)
        label[free + device] = end
        label[over] += end - start + (steps.after[n] if g < 0 else 0)
    for step in (n, g):
        if step >= 0:
            label[place_of(step, run, steps)] = end
    for step in (n, g):
        if step >= 0 and step == steps.last[step]:  # the first micro-batch of its chain is through
            final = steps.column[step] + steps.admitted[step] - 1
            for place in range(steps.column[step], final):
                label[place] = label[place + 1]
            label[final] = 0
    return int(end)


@inner
def raise_times(label: Labels, run: Numbers, places: Numbers, comes: Numbers, count: int, steps: Steps) -> None:
    """Change times to the latest with which nothing that is left runs later.

    A micro-batch waits for its next device, and a device for what comes to it first: of those under way, or the next
    one of a chain. Until then it runs what is open.
    """
    free = steps.columns
    for which in range(count):
        n = comes[which]
        label[places[which]] = max(np.int64(label[places[which]]), label[free + steps.device[n]] - steps.lag[n])
    for one in range(len(steps.room)):
        first = np.int64(_LATE)
        for which in range(count):
            if steps.soonest[comes[which], one] >= 0:
                first = min(first, label[places[which]] + steps.soonest[comes[which], one])
        n = 0
        while n < len(run):
            if run[n] < steps.number[n] and steps.soonest[n, one] >= 0:
                begins = max(np.int64(steps.past), label[free + steps.device[n]] - steps.lag[n])
                first = min(first, begins + steps.soonest[n, one])
            n = steps.last[n] + 1
        if first < _LATE:
            label[free + one] = max(np.int64(label[free + one]), first)
        over = free + len(steps.room) + one
        label[over] = max(label[over], label[free + one])


@inner
def value_of(label: Labels, n: int, g: int, end: int, steps: Steps) -> int:
    """When all that counts has ended, of an order that is over with this move."""
    latest = np.int64(0)
    for device in steps.counted:
        latest = max(latest, np.int64(label[steps.columns + len(steps.room) + device]))
    for step in (n, g):
        if step >= 0:
            latest = max(latest, end + steps.behind[step])
    return int(latest)
