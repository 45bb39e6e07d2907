"""One round of the dynamic program, compiled: some forwards, then a gradient on every stage of the line.

A label has, for each stage, when its device is free and when it is if all open weight passes run at once, and for each
micro-batch whose gradient has not come back when its last forward ended.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled
from solver.diagram.first_stages.line import Numbers
from solver.diagram.reduction import nowhere_later

LONG_AGO = -(1 << 58)


@compiled
def run(label: Numbers, before: Numbers, after: Numbers, ticks: Numbers, turn: int, pending: Numbers) -> None:
    """Change a label by the round that leads from one state to another.

    `ticks` has the rows of a line: forwards, gradients, weight passes, ways down and up.
    """
    n = len(before)
    forward, gradient, weight, down, up = ticks[0], ticks[1], ticks[2], ticks[3], ticks[4]
    for d in range(n):
        for r in range(before[d], after[d] + 1):
            start = label[d]
            if d > 0:
                start = max(start, label[2 * n + r] + down[d - 1])
            if pending[d, r] >= 0:
                start = max(start, label[n + d] - pending[d, r] * weight[d])
            label[d] = start + forward[d]
            label[n + d] = max(label[n + d] + forward[d], label[d])
            label[2 * n + r] = label[d]
    came = label[2 * n] + turn
    for d in range(n - 1, -1, -1):
        label[d] = max(label[d], came) + gradient[d]
        label[n + d] = max(label[n + d] + gradient[d], label[d]) + weight[d]
        if d > 0:
            came = label[d] + up[d - 1]
    for r in range(2 * n, len(label) - 1):
        label[r] = label[r + 1]
    label[-1] = LONG_AGO
    for r in range(len(label) - 2 * n):
        if r >= after[0] or (turn == 0 and r < after[n - 1]):
            label[2 * n + r] = LONG_AGO  # it has not begun, or the last device is not free before it ended


@compiled
def lift(label: Numbers, row: Numbers, ticks: Numbers, turn: int) -> None:
    """Raise the times of a label in this state to those before which nothing more can run there anyway.

    The next to run on a stage is the forward that is its turn, or the gradient of the first micro-batch. Labels that
    differ only in what decides nothing become equal, and so fewer have to be merged.
    """
    n = len(row)
    gradient, down, up = ticks[1], ticks[3], ticks[4]
    for d in range(1, n):
        soonest = _arrival(label, row, ticks, row[d], d)
        back = _arrival(label, row, ticks, 0, n) if row[n - 1] == 0 else label[2 * n]
        back = max(back + turn, label[n - 1])
        for k in range(n - 1, d, -1):
            back = max(back + gradient[k] + up[k - 1], label[k - 1])
        label[d] = max(label[d], min(soonest, back))
        label[n + d] = max(label[n + d], label[d])
    for r in range(row[0]):
        if label[2 * n + r] > LONG_AGO:
            d = _next_stage(row, r)
            soonest = label[d] - down[d - 1] if d < n else label[n - 1] - turn
            label[2 * n + r] = max(label[2 * n + r], soonest)


@compiled
def _next_stage(row: Numbers, r: int) -> int:
    """The stage of the next forward of micro-batch r, one past the last where all have run."""
    for d in range(len(row)):
        if row[d] <= r:
            return d
    return len(row)


@compiled
def _arrival(label: Numbers, row: Numbers, ticks: Numbers, r: int, until: int) -> int:
    """When micro-batch r, at the earliest, could start on stage `until`; past the last: when its last forward ends."""
    n, d = len(row), _next_stage(row, r)
    at = label[d] if d == 0 else max(label[2 * n + r] + ticks[3, d - 1], label[d])
    for k in range(d, until):
        at += ticks[0, k]
        if k + 1 < n:
            at = max(at + ticks[3, k], label[k + 1])
    return int(at)


@compiled
def keep(labels: Numbers, count: int, new: Numbers) -> int:
    """Put a label among the `count` of a state unless one of them is nowhere later; how many there are then.

    Those that are nowhere earlier go. Where there is no more place the nearest one takes the earlier of both times.
    """
    for at in range(count):
        if nowhere_later(labels[at], new):
            return count
    left = 0
    for at in range(count):
        if not nowhere_later(new, labels[at]):
            labels[left] = labels[at]
            left += 1
    if left < len(labels):
        labels[left] = new
        return left + 1
    nearest = np.argmin(np.array([np.abs(one - new).sum() for one in labels]))
    labels[nearest] = np.minimum(labels[nearest], new)
    return left


@compiled
def one_round(
    labels: Numbers,
    counts: Numbers,
    states: Numbers,
    since: Numbers,
    until: Numbers,
    left: int,
    ticks: Numbers,
    turn: int,
    pending: Numbers,
    after: Numbers,
    kept: Numbers,
) -> int:
    """Fill `after` and `kept` with the labels of every state after a round; how many labels were looked at.

    `left` micro-batches have not got their gradient back before it.
    """
    work, label = 0, np.empty(labels.shape[2], np.int64)
    for step in range(len(since)):
        one, other = since[step], until[step]
        if states[other, 0] < left:
            for at in range(counts[one]):
                label[:] = labels[one, at]
                run(label, states[one], states[other], ticks, turn, pending)
                if left > 1:
                    lift(label, states[other], ticks, turn)
                work += 1 + kept[other]
                kept[other] = keep(after[other], kept[other], label)
    return work
