"""All orders of forwards and gradients along some stages, tried by dynamic programming, compiled."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from pipesched.compiled import compiled

Numbers = np.ndarray[Any, np.dtype[np.int64]]

# When what has not run ended, or what nothing waits for any more.
_NEVER = -(2**58)
# Rounds until repetitions are looked for, and of how many rounds.
_ROUNDS, _LOOK_BACK = 96, (*range(1, 17), 24, 32, 48, 64, 80)
# Rows of a partial order's times: when a device is free, when it would be had it run all weight passes that it could.
_FREE, _DONE, _ROWS = 0, 1, 2


def orders_tried(
    ahead: Numbers, at: Numbers, following: Numbers, durations: Numbers, open_: Numbers, count: int, width: int
) -> Numbers:
    """When each stage has run all there is, for every order of all micro-batches that is kept distinct at the end.

    The states after state n are `following` from `at[n]` to before `at[n + 1]`.
    """
    states, stages = ahead.shape
    # By state and order: rows of devices, then by micro-batch when its last forward ended.
    length = _ROWS * stages + int(ahead.max()) + 1
    times = np.zeros((states, width, length), np.int64)
    times[:, :, _ROWS * stages :] = _NEVER
    many = np.zeros(states, np.int64)
    many[0] = 1
    left, rounds = count, list[tuple[Numbers, Numbers]]()
    while left:
        times, many = all_after(ahead, at, following, durations, open_, left, times, many)
        left -= 1
        rounds.append((times, many))
        if len(rounds) == _ROUNDS and left > ahead.max() + 1:
            later, skipped = _repeated(rounds, left - int(ahead.max()) - 1)
            times[times > _NEVER // 2] += later
            left -= skipped
    return times[0, : many[0], _DONE * stages : (_DONE + 1) * stages]


def _repeated(rounds: list[tuple[Numbers, Numbers]], most: int) -> tuple[int, int]:
    """How many rounds to skip, `most` at most, and how much later all is after them.

    Rounds keep an order of times. So if all times of a state are so much later than some that it had a number of rounds
    ago, they are as much later again after as many rounds more, which is what is repeated.
    """
    best = Fraction(0), 0, 0
    for back in (back for back in _LOOK_BACK if back <= most):
        later = min(
            _later(one, other) for one, other in zip(_orders(rounds[-1 - back]), _orders(rounds[-1]), strict=True)
        )
        repeats = most // back
        best = max(best, (Fraction(int(later), back), -back, int(later) * repeats))
    pace, back, later_in_all = best
    return later_in_all, (most // -back) * -back if pace > 0 else 0


def _orders(found: tuple[Numbers, Numbers]) -> list[Numbers]:
    """By state the times of all orders that are kept distinct."""
    times, many = found
    return [times[state, :count] for state, count in enumerate(many)]


def _later(before: Numbers, after: Numbers) -> float:
    """By how much each order after is later in all times than some order before, at least."""
    if not len(after):
        return inf
    if not len(before):
        return 0
    counted = after[0] > _NEVER // 2
    differ = after[:, None, counted] - before[None, :, counted]
    return int(differ.min(axis=2).max(axis=1).min())


@compiled
def all_after(
    ahead: Numbers,
    at: Numbers,
    following: Numbers,
    durations: Numbers,
    open_: Numbers,
    left: int,
    times: Numbers,
    many: Numbers,
) -> tuple[Numbers, Numbers]:
    """The times after one more gradient on every stage; `left` have not run before it."""
    found, found_many = np.empty_like(times), np.zeros_like(many)
    for one in range(len(ahead)):
        for n in range(at[one], at[one + 1]):
            other = following[n]
            if ahead[other, 0] + 1 <= left:
                for k in range(many[one]):
                    new = _after(times[one, k], ahead[one], ahead[other], durations, open_)
                    if left > 1:
                        _until_something_comes(new, ahead[other], durations)
                    found_many[other] = _added(found[other], found_many[other], new)
    return found, found_many


@compiled
def _after(times: Numbers, one: Numbers, other: Numbers, durations: Numbers, open_: Numbers) -> Numbers:
    """The times when the forwards between the states have run, and a gradient behind them on every stage."""
    stages, new = len(one), times.copy()
    ended = new[_ROWS * stages :]
    for s in range(stages):
        forward, _, weight, _, _ = durations[s]
        for r in range(one[s], other[s] + 1):
            start = new[s]
            if s:
                start = max(start, ended[r] + durations[s - 1, 3])
            if open_[s, r] >= 0:
                start = max(start, new[stages + s] - open_[s, r] * weight)
            new[s] = ended[r] = start + forward
            new[stages + s] = max(new[stages + s] + forward, new[s])
    back = ended[0] + durations[stages - 1, 3]
    for s in range(stages - 1, -1, -1):
        gradient, weight = durations[s, 1], durations[s, 2]
        new[s] = max(new[s], back) + gradient
        new[stages + s] = max(new[stages + s] + gradient, new[s]) + weight
        back = new[s] + (durations[s - 1, 4] if s else 0)
    turns = durations[stages - 1, 3] > 0
    for r in range(len(ended)):
        follows = r + 1 < len(ended) and r < other[0] and (turns or r >= other[stages - 1])
        ended[r] = ended[r + 1] if follows else _NEVER
    return new


@compiled
def _until_something_comes(times: Numbers, come: Numbers, durations: Numbers) -> None:
    """Change times to the latest with which nothing runs later.

    On a stage runs next either the forward that follows there, or the gradient of the first micro-batch, since another
    one is still to come. Neither can start before it has come from the stage where its micro-batch is.
    """
    stages = len(come)
    ended = times[_ROWS * stages :]
    for s in range(1, stages):
        forward = _comes(times, come, durations, come[s], s)
        gradient = max(_turns(times, come, durations), times[stages - 1])
        for below in range(stages - 1, s, -1):
            gradient = max(gradient + durations[below, 1] + durations[below - 1, 4], times[below - 1])
        times[s] = max(times[s], min(forward, gradient))
        times[stages + s] = max(times[stages + s], times[s])
    for r in range(come[0]):
        if ended[r] > _NEVER:
            s = _next(come, r)
            way = durations[s - 1, 3]  # to the next stage, or from the last to the turn and back
            ended[r] = max(ended[r], times[min(s, stages - 1)] - way)


@compiled
def _next(come: Numbers, r: int) -> int:
    """The first stage on which the forward of micro-batch r has not run; how many stages there are if there is none."""
    s = 0
    while s < len(come) and come[s] > r:
        s += 1
    return s


@compiled
def _comes(times: Numbers, come: Numbers, durations: Numbers, r: int, stage: int) -> int:
    """The least start on a stage of a forward that has not run there, after those of the stages before."""
    s = _next(come, r)
    start = times[s] if s == 0 else max(times[s], times[_ROWS * len(come) + r] + durations[s - 1, 3])
    while s < stage:
        start = max(start + durations[s, 0] + durations[s, 3], times[s + 1])
        s += 1
    return int(start)


@compiled
def _turns(times: Numbers, come: Numbers, durations: Numbers) -> int:
    """When the gradient of the first micro-batch comes to the last stage at the earliest."""
    last = len(come) - 1
    ended = times[_ROWS * len(come)]
    if come[last] == 0:
        ended = _comes(times, come, durations, 0, last) + durations[last, 0]
    return int(ended + durations[last, 3])


@compiled
def _no_later(one: Numbers, other: Numbers) -> bool:
    for n in range(len(one)):  # noqa: SIM110 - most differ soon, and Numba compiles no generator
        if one[n] > other[n]:
            return False
    return True


@compiled
def _added(found: Numbers, many: int, new: Numbers) -> int:
    """Add times to those of a state, and say how many these are now.

    What is in no time earlier than another is left out. Of more than there is place for, the new ones and those
    that differ least in all are replaced by the earlier of both, which no order of either is before.
    """
    for n in range(many):
        if _no_later(found[n], new):
            return many
    stay = 0
    for n in range(many):
        if not _no_later(new, found[n]):
            if stay < n:
                found[stay] = found[n]
            stay += 1
    if stay < len(found):
        found[stay] = new
        return stay + 1
    nearest, least = 0, np.int64(2**62)
    for n in range(stay):
        differ = np.abs(found[n] - new).sum()
        if differ < least:
            nearest, least = n, differ
    found[nearest] = np.minimum(found[nearest], new)
    return stay
