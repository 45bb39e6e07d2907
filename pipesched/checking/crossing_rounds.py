"""All orders of forwards and gradients along some stages, tried by dynamic programming, compiled."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from numba import njit

Numbers = np.ndarray[Any, np.dtype[np.int64]]

# When what has not run ended, or what nothing waits for any more.
_NEVER = -(2**58)
# Rows of a partial order's times: when a device is free, when it would be had it run all weight passes that it could.
_FREE, _DONE, _ROWS = 0, 1, 2


def orders_tried(
    ahead: Numbers, at: Numbers, following: Numbers, durations: Numbers, open_: Numbers, count: int, width: int
) -> Numbers:
    """When each stage has run all there is, for every order of all micro-batches that is told apart at the end.

    The states after state n are `following` from `at[n]` to before `at[n + 1]`.
    """
    states, stages = ahead.shape
    # By state and order: rows of devices, then by micro-batch when its last forward ended.
    length = _ROWS * stages + int(ahead.max()) + 1
    times = np.zeros((states, width, length), np.int64)
    times[:, :, _ROWS * stages :] = _NEVER
    many = np.zeros(states, np.int64)
    many[0] = 1
    left, known = count, dict[bytes, tuple[int, int]]()
    while left:
        times, many = all_after(ahead, at, following, durations, open_, left, times, many)
        left -= 1
        if left > ahead.max():
            left = _repeated(times, many, left, int(ahead.max()) + 1, known)
    return times[0, : many[0], _DONE * stages : (_DONE + 1) * stages]


def _repeated(times: Numbers, many: Numbers, left: int, least: int, known: dict[bytes, tuple[int, int]]) -> int:
    """Add whole periods to all times where they are those of an earlier round but for a delay; how many are left then.

    The next rounds are the same as those after that round while so many are left that no state is too far ahead.
    """
    orders = [times[n, :each] for n, each in enumerate(many)]
    first = min(int(each[:, _FREE].min()) for each in orders if len(each))
    relative = (np.where(each > _NEVER, each - first, each).tobytes() for each in orders)
    digest = sha256(b"".join([many.tobytes(), *relative])).digest()
    then, start = known.setdefault(digest, (left, first))
    if then == left:
        return left
    periods = max(0, left - least) // (then - left)
    for each in orders:
        each[each > _NEVER] += periods * (first - start)
    return left - periods * (then - left)


@njit(cache=True, nogil=True)
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
                    found_many[other] = _added(found[other], found_many[other], new)
    return found, found_many


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _no_later(one: Numbers, other: Numbers) -> bool:
    for n in range(len(one)):  # noqa: SIM110 - most differ soon, and Numba compiles no generator
        if one[n] > other[n]:
            return False
    return True


@njit(cache=True, nogil=True)
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
