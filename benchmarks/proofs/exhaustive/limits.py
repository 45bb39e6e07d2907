"""Lower bounds on the starts of all passes under orders that are known in part: compiled.

A start is counted in units. Each arc adds one unit, which is too little to count, so that a circle of passes without
length is found as any other is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipesched.compiled import compiled

Numbers = Any
# Units of a sixth of a tick, far more than there are arcs on a path; and of a tick.
UNIT = 4096
TICK = 6 * UNIT
NEVER = -(2**50)


# Rows of numbers on passes, a column for each pair of a stage and a micro-batch; -1 for what there is not. `BEFORE` and
# `AFTER` are the pairs of the stages before and after on the chain; `FORWARD_LAG` is the lag from the forward
# before, `BACKWARD_LAG` that from the backward after; `FIRST` is the pair whose forward is first since both are alike
# or stay in order, `FIRST_BACK` that whose backward is; `SAVES` is what a block saves, where its time is not that
# of its forward.
(
    DEVICE,
    FORWARD,
    BACKWARD,
    WEIGHT,
    FUSED,
    BLOCK,
    ACTIVATION,
    FREED,
    BEFORE,
    AFTER,
    FORWARD_LAG,
    BACKWARD_LAG,
    FIRST,
    FIRST_BACK,
    SAVES,
) = range(15)


@compiled
def block_ticks(passes: Numbers, forward: int, backward: int) -> int:
    """The ticks of a block of these forward and backward; -1 where there is none."""
    if passes[SAVES, forward] < 0:
        return int(passes[BLOCK, forward])
    saved = min(passes[SAVES, forward], passes[SAVES, backward])
    return int(passes[FORWARD, forward] + passes[FUSED, backward] - saved)


@compiled
def least_ticks(passes: Numbers, blocks: bool) -> tuple[Numbers, Numbers]:
    """The least ticks from start to end of each forward and backward; the least work that a backward is in all.

    A full backward in a block of its device takes no time of its own.
    """
    pairs = passes.shape[1]
    least, work = np.zeros(3 * pairs, np.int64), np.zeros(pairs, np.int64)
    for k in range(pairs):
        least[3 * k] = passes[FORWARD, k]
        whole = passes[FUSED, k]
        if blocks:
            for other in range(pairs):
                if passes[DEVICE, other] == passes[DEVICE, k]:
                    whole = min(whole, block_ticks(passes, other, k))
                    least[3 * k] = min(least[3 * k], block_ticks(passes, k, other))
        own = 0 if blocks else whole
        if passes[FUSED, k] < 0:
            least[3 * k + 1], work[k] = passes[BACKWARD, k], passes[BACKWARD, k] + passes[WEIGHT, k]
        elif passes[WEIGHT, k] < 0:
            least[3 * k + 1], work[k] = whole, own
        else:
            least[3 * k + 1] = min(passes[BACKWARD, k], whole)
            work[k] = min(passes[BACKWARD, k] + passes[WEIGHT, k], own)
        least[3 * k + 2] = max(0, passes[WEIGHT, k])
    return least, work


@compiled
def tails_of(passes: Numbers, least: Numbers, devices: int, span: bool) -> Numbers:
    """From the end of each pass to the last end on each device that surely follows, if any; of all for makespan."""
    pairs, owners = passes.shape[1], devices if span else 1
    tails = np.full((3 * pairs, owners), NEVER)
    for e in range(owners):
        for k in range(pairs):
            here = not span or passes[DEVICE, k] == e
            if here:
                tails[3 * k : 3 * k + 3, e] = 0
                if passes[FUSED, k] < 0:
                    tails[3 * k + 1, e] = passes[WEIGHT, k]
            to = passes[BEFORE, k]
            if to >= 0 and tails[3 * to + 1, e] >= 0:
                further = passes[BACKWARD_LAG, to] + least[3 * to + 1] + tails[3 * to + 1, e]
                tails[3 * k + 1, e] = max(tails[3 * k + 1, e], further)
        for k in range(pairs - 1, -1, -1):
            if tails[3 * k + 1, e] >= 0:
                tails[3 * k, e] = max(tails[3 * k, e], least[3 * k + 1] + tails[3 * k + 1, e])
            to = passes[AFTER, k]
            if to >= 0 and tails[3 * to, e] >= 0:
                tails[3 * k, e] = max(tails[3 * k, e], passes[FORWARD_LAG, to] + least[3 * to] + tails[3 * to, e])
    return tails


@compiled
def settle(  # noqa: PLR0912
    passes: Numbers,
    own: tuple[Numbers, Numbers, Numbers, Numbers],
    order: tuple[int, int, Numbers, Numbers],
    tails: Numbers,
    span: bool,
    limit: int,
) -> bool:
    """Raise starts to the least that order, needs and limit allow; False if there are none within the limit.

    `own` are the starts, which end with those of the devices; the ticks of each pass; the last pass of each device and
    the work left to it. `order` are the passes in order so far and the backwards known to be split, as bits; the pass
    before each on its device, and the other one of a block.
    """
    start, ticks, last, left = own
    ran, split = order[:2]
    n, devices = len(ticks), len(last)
    until = limit * UNIT + n
    for _ in range(3):
        rounds, changed = 0, True
        while changed:
            rounds += 1
            if rounds > n + devices + 1:
                return False
            changed = raised(passes, own, order, span, until)
            if not span:
                for p in range(n):
                    if start[p] + (ticks[p] + tails[p, 0]) * TICK > until and (p % 3 < 2 or split >> p // 3 & 1):
                        return False
        for d in range(devices):
            begin, tails_left = 2**60, np.full(tails.shape[1], 2**60)
            for k in range(passes.shape[1]):
                if passes[DEVICE, k] != d:
                    continue
                for role in range(3):
                    p = 3 * k + role
                    if ran >> p & 1 or (role == 2 and not split >> k & 1):
                        continue
                    begin = min(begin, start[p])
                    # After a backward that may be split its weight pass may be the last.
                    end = p + 1 if role == 1 and passes[WEIGHT, k] >= 0 else p
                    for e in range(len(tails_left)):
                        tails_left[e] = min(tails_left[e], tails[end, e])
            if begin == 2**60:
                continue
            for e in range(len(tails_left)):
                if tails_left[e] < 0:
                    continue
                end_ = begin + (left[d] + tails_left[e]) * TICK
                if span and end_ - until > start[n + e]:
                    start[n + e] = end_ - until
                    changed = True
                elif not span and end_ > until:
                    return False
        if not changed:
            break
    return True


@compiled
def raised(  # noqa: PLR0912
    passes: Numbers,
    own: tuple[Numbers, Numbers, Numbers, Numbers],
    order: tuple[int, int, Numbers, Numbers],
    span: bool,
    until: int,
) -> bool:
    """One round over all arcs; whether any start was raised."""
    start, ticks, last, left = own
    ran, split, previous, same = order
    n, pairs, changed = len(ticks), passes.shape[1], False
    for turn in range(2 * pairs):
        k = turn if turn < pairs else 2 * pairs - 1 - turn
        device = passes[DEVICE, k]
        for role in range(0 if turn < pairs else 1, 1 if turn < pairs else 3):
            p = 3 * k + role
            if role == 2 and not split >> k & 1:
                continue
            begin = max(start[p], start[n + device])
            if role == 0 and passes[BEFORE, k] >= 0:
                q = 3 * passes[BEFORE, k]
                begin = max(begin, start[q] + (ticks[q] + passes[FORWARD_LAG, k]) * TICK + 1)
            if role > 0:
                begin = max(begin, start[p - 1] + ticks[p - 1] * TICK + 1)
            if role == 1 and passes[AFTER, k] >= 0:
                q = 3 * passes[AFTER, k] + 1
                begin = max(begin, start[q] + (ticks[q] + passes[BACKWARD_LAG, k]) * TICK + 1)
            if ran >> p & 1:
                q = previous[p]
                if same[p] >= 0:
                    begin = max(begin, start[same[p]])
            else:
                q = last[device]
            if q >= 0:
                begin = max(begin, start[q] + ticks[q] * TICK + 1)
            if begin > start[p]:
                start[p] = begin
                changed = True
            if span:
                end = begin + ticks[p] * TICK - until
                if last[device] == p:
                    end += left[device] * TICK
                if end > start[n + device]:
                    start[n + device] = end
                    changed = True
    return changed
