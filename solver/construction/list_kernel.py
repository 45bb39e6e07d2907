"""The list scheduler compiled: one run over arrays, for plain policies; the same passes in turn as in `list_run`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.int64]

FORWARD, BACKWARD, WEIGHT, NOTHING = 0, 1, 2, -1
# Columns of `Shop.stages`: device, neighbours on the chain (-1 for none), lags from them, first and last micro-batch,
# chain, then for each kind its duration, what it takes at its start, and what it changes in all.
DEVICE, BEFORE, AFTER, LAG_FORWARD, LAG_BACKWARD, FIRST, STOP, CHAIN, TICKS, STARTS, TOTALS = *range(8), 8, 11, 14
STAGE_COLUMNS = 17
# Columns of `Shop.devices`: whether memory is limited, the room, where its stages begin and end in `Shop.on`.
LIMITED, ROOM, AT, END = range(4)
# Columns of `Rules.stages`; the ranks are of its forwards and of its gradients.
MOST, PATIENCE, YIELDS, RANKS, AHEAD, WARM_UP = 0, 1, 2, 3, 5, 6
RULE_COLUMNS = 7
# Of a device while it runs: when it is free, what it holds, the first and the last micro-batch under way there and how
# many of them owe something, when it began; what it runs next: start, kind and stage.
_FREE, _HELD, _LOW, _HIGH, _OWING, _OPENED, _START, _KIND, _STAGE = range(9)
# What a micro-batch is on a device: not begun, under way with memory taken or owed, over.
_NOT_BEGUN, _UNDER_WAY, _OVER = 0, 1, 2
_COUNT, _HOLDS, _OWES = range(3)
_NEVER = 2**60


class Shop(NamedTuple):
    """A problem as the kernel reads it, with its backwards run in one way.

    `on` are the stages of every device in turn; `owed[d, chain]` is what the forwards of a micro-batch take there.
    """

    stages: Array
    devices: Array
    on: Array
    owed: Array


class Rules(NamedTuple):
    """What a run prefers. `flags`: backwards split, later devices first, deepest stage first, passes by their ranks.

    For each stage how many of its micro-batches may be in flight, how long its weight passes wait for what is about to
    become ready, and how long its forwards wait for a gradient. Where passes are chosen by their ranks, the lowest goes
    first of all that start no later than that after the soonest, and `AHEAD` is how many micro-batches further on the
    weight passes of a stage may be run before those of others. `WARM_UP` is how many forwards a stage runs before its
    first backward, neither more nor fewer; 0 where that is open. It does not concern passes chosen by their ranks.
    """

    flags: Array
    stages: Array


@njit(inline="always")
def _has_room(stages, devices, owed, now, batches, d, s, j):  # type: ignore[no-untyped-def]
    """Whether memory has room for a forward after which all that is under way can still end, oldest first."""
    takes = stages[s, STARTS]
    left = devices[d, ROOM] - now[d, _HELD] - takes
    begun = batches[d, j, _COUNT]
    own = owed[d, stages[s, CHAIN]] if begun == _NOT_BEGUN else batches[d, j, _OWES] if begun == _UNDER_WAY else 0
    others = now[d, _OWING] - (1 if begun == _UNDER_WAY and own != 0 else 0)
    fits = left >= 0
    if fits and (others > 0 or own > takes):
        for one in range(min(now[d, _LOW], j), max(now[d, _HIGH], j) + 1):
            if one == j:
                fits = fits and left >= own - takes
                left += takes + (batches[d, j, _HOLDS] if begun == _UNDER_WAY else 0)
            elif batches[d, one, _COUNT] == _UNDER_WAY:
                fits = fits and left >= batches[d, one, _OWES]
                left += batches[d, one, _HOLDS]
    return fits


@njit(inline="always")
def _hold(stages, owed, now, batches, d, s, j, kind):  # type: ignore[no-untyped-def]
    """What a pass that was put takes and gives back."""
    change, before = stages[s, TOTALS + kind], batches[d, j, _COUNT]
    now[d, _HELD] += change
    if before != _UNDER_WAY:
        batches[d, j, _HOLDS] = 0
        batches[d, j, _OWES] = owed[d, stages[s, CHAIN]] if before == _NOT_BEGUN else 0
    owing = before == _UNDER_WAY and batches[d, j, _OWES] != 0
    batches[d, j, _HOLDS] += change
    if kind == FORWARD:
        batches[d, j, _OWES] -= change
    over = batches[d, j, _HOLDS] == 0 and batches[d, j, _OWES] == 0
    batches[d, j, _COUNT] = _OVER if over else _UNDER_WAY
    now[d, _OWING] += (1 if not over and batches[d, j, _OWES] != 0 else 0) - (1 if owing else 0)
    if not over:
        now[d, _LOW], now[d, _HIGH] = min(now[d, _LOW], j), max(now[d, _HIGH], j)
    while now[d, _LOW] < now[d, _HIGH] and batches[d, now[d, _LOW], _COUNT] != _UNDER_WAY:
        now[d, _LOW] += 1


@njit(inline="always")
def _choose(stages, devices, on, owed, flags, rules, now, batches, turn, ends, d, restrained):  # type: ignore[no-untyped-def]
    """What a device runs next. A weight pass yields to what can start soon after it could."""
    forward, forward_at, forward_tie = -1, 0, 0
    backward, backward_at, backward_tie = -1, 0, 0
    weight, weight_tie, free = -1, 0, now[d, _FREE]
    limited = devices[d, LIMITED] != 0
    for k in range(devices[d, AT], devices[d, END]):
        s = on[k]
        j, other = turn[s, FORWARD], stages[s, BEFORE]
        may = j < stages[s, STOP] and (other < 0 or j < turn[other, FORWARD])
        if may and restrained:
            may = j - turn[s, BACKWARD] < rules[s, MOST]
        warm_up = restrained and rules[s, WARM_UP] > 0 and turn[s, BACKWARD] == stages[s, FIRST]
        may = may and not (warm_up and j - stages[s, FIRST] >= rules[s, WARM_UP])
        if may and limited:
            may = _has_room(stages, devices, owed, now, batches, d, s, j)
        if may:
            at = free if other < 0 else max(free, ends[other, j, FORWARD] + stages[s, LAG_FORWARD])
            tie = -s if flags[2] else j
            if forward < 0 or at < forward_at or (at == forward_at and tie < forward_tie):
                forward, forward_at, forward_tie = s, at, tie
        j, other = turn[s, BACKWARD], stages[s, AFTER]
        may = j < turn[s, FORWARD] and (other < 0 or j < turn[other, BACKWARD])
        may = may and not (warm_up and turn[s, FORWARD] - stages[s, FIRST] < rules[s, WARM_UP])
        if may and limited:
            may = devices[d, ROOM] - now[d, _HELD] >= stages[s, STARTS + BACKWARD]
        if may:
            at = free if other < 0 else max(free, ends[other, j, BACKWARD] + stages[s, LAG_BACKWARD])
            if backward < 0 or at < backward_at or (at == backward_at and j < backward_tie):
                backward, backward_at, backward_tie = s, at, j
        j = turn[s, WEIGHT]
        if flags[0] and j < turn[s, BACKWARD] and (weight < 0 or j < weight_tie):
            weight, weight_tie = s, j
    kind, s, at = FORWARD, forward, forward_at
    if backward >= 0 and (forward < 0 or backward_at <= forward_at + rules[forward, YIELDS]):
        kind, s, at = BACKWARD, backward, backward_at
    if weight >= 0 and (s < 0 or at > free + rules[weight, PATIENCE]):
        kind, s, at = WEIGHT, weight, free
    now[d, _START], now[d, _KIND], now[d, _STAGE] = at, (kind if s >= 0 else NOTHING), s


@njit(inline="always")
def _weight_ahead(devices, on, flags, rules, turn, d):  # type: ignore[no-untyped-def]
    """The stage whose weight pass a device would run, -1 for none."""
    found, first = -1, np.int64(_NEVER)
    for k in range(devices[d, AT], devices[d, END]):
        j = turn[on[k], WEIGHT]
        if flags[0] and j < turn[on[k], BACKWARD] and j - rules[on[k], AHEAD] < first:
            found, first = on[k], j - rules[on[k], AHEAD]
    return found


@njit(inline="always")
def _choose_by_rank(stages, devices, on, owed, flags, rules, now, batches, turn, ends, d, restrained):  # type: ignore[no-untyped-def]
    """What a device runs next: of all that can start about as soon as anything, what ranks first.

    If that is a forward which waits for memory only, a weight pass.
    """
    limited, free, soonest = devices[d, LIMITED] != 0, now[d, _FREE], np.int64(_NEVER)
    kind, s, at, rank, rank_without_room = NOTHING, -1, np.int64(_NEVER), np.int64(_NEVER), np.int64(_NEVER)
    for choosing in range(2):
        for k in range(devices[d, AT], devices[d, END]):
            one = on[k]
            for what in range(2):
                j, other = turn[one, what], stages[one, BEFORE + what]
                may = j < (stages[one, STOP] if what == FORWARD else turn[one, FORWARD])
                if not may or (other >= 0 and j >= turn[other, what]):
                    continue
                if what == FORWARD and restrained and j - turn[one, BACKWARD] >= rules[one, MOST]:
                    continue
                start = free if other < 0 else max(free, ends[other, j, what] + stages[one, LAG_FORWARD + what])
                if not limited:
                    fits = True
                elif what == FORWARD:
                    fits = _has_room(stages, devices, owed, now, batches, d, one, j)
                else:
                    fits = devices[d, ROOM] - now[d, _HELD] >= stages[one, STARTS + BACKWARD]
                if not choosing:
                    soonest = min(soonest, start) if fits else soonest
                elif not fits:
                    blocked = what == FORWARD and start <= soonest
                    rank_without_room = min(rank_without_room, rules[one, RANKS]) if blocked else rank_without_room
                elif start <= soonest + max(0, rules[one, YIELDS]) and rules[one, RANKS + what] < rank:
                    kind, s, at, rank = what, one, start, rules[one, RANKS + what]
    weight = _weight_ahead(devices, on, flags, rules, turn, d)
    if weight >= 0 and (s < 0 or at > free + rules[weight, PATIENCE] or rank_without_room < rank):
        kind, s, at = WEIGHT, weight, free
    now[d, _START], now[d, _KIND], now[d, _STAGE] = at, kind, s


@njit(inline="always")
def _earliest(now, later):  # type: ignore[no-untyped-def]
    """The device whose next pass starts first, -1 for none; of those at one time the last if `later`, or the first."""
    best = -1
    for d in range(len(now)):
        if now[d, _KIND] != NOTHING:
            start = now[d, _START]
            if best < 0 or start < now[best, _START] or (start == now[best, _START] and later):
                best = d
    return best


@njit(cache=True, nogil=True)
def run_list(stages, devices, on, owed, flags, rules, put, halt):  # type: ignore[no-untyped-def]
    """Fills `put` with kind, stage and micro-batch in the order in which passes are put; how many, -1 if memory locks.

    Then the longest time from a device's first start to its last end, the latest end, and the sums of such times and of
    such ends over all devices. `halt[0]` ends it early.
    """
    count, most = len(devices), stages[:, STOP].max()
    turn = np.zeros((len(stages), 3), np.int64)
    for s in range(len(stages)):
        turn[s] = stages[s, FIRST]
    ends, batches = np.zeros((len(stages), most, 2), np.int64), np.zeros((count, most, 3), np.int64)
    now = np.zeros((count, 9), np.int64)
    now[:, _LOW], now[:, _OPENED] = most, -1
    left = 2 * (stages[:, STOP] - stages[:, FIRST]).sum()
    changed, many, later = np.arange(max(3, count)), count, flags[1] != 0
    done, restrained = 0, True
    while not halt[0]:
        for k in range(many):
            d = changed[k]
            if flags[3]:
                _choose_by_rank(stages, devices, on, owed, flags, rules, now, batches, turn, ends, d, restrained)
            else:
                _choose(stages, devices, on, owed, flags, rules, now, batches, turn, ends, d, restrained)
        best = _earliest(now, later)
        if best < 0 and not (restrained and left):
            break
        many = 0
        if best >= 0:
            what, s, start = now[best, _KIND], now[best, _STAGE], now[best, _START]
            j = turn[s, what]
            put[done, 0], put[done, 1], put[done, 2] = what, s, j
            done += 1
            if now[best, _OPENED] < 0:
                now[best, _OPENED] = start
            now[best, _FREE] = start + stages[s, TICKS + what]
            turn[s, what] += 1
            if what != WEIGHT:
                ends[s, j, what] = now[best, _FREE]
                left -= 1
            _hold(stages, owed, now, batches, best, s, j, what)
            for other in (s, stages[s, BEFORE], stages[s, AFTER]):
                if other >= 0:
                    changed[many] = stages[other, DEVICE]
                    many += 1
        if best < 0 or not restrained:
            # Nothing could run: it takes the memory that was kept to go on, for one pass.
            restrained, many = best >= 0, count
            changed[:count] = np.arange(count)
    spans = now[:, _FREE] - np.maximum(now[:, _OPENED], 0)
    return (-1 if left else done), spans.max(), now[:, _FREE].max(), spans.sum(), now[:, _FREE].sum()
