"""Search over the orders of all devices together for a schedule within a limit: compiled.

Each step puts a pass next on one device, and raises the starts of all passes to the least that this allows.
"""

from __future__ import annotations

import numpy as np

from benchmarks.proofs.exhaustive.choices import choose, needs_of
from benchmarks.proofs.exhaustive.limits import (
    ACTIVATION,
    BACKWARD,
    BLOCK,
    DEVICE,
    FORWARD,
    FREED,
    FUSED,
    SAVES,
    WEIGHT,
    Numbers,
    block_ticks,
    least_ticks,
    settle,
    tails_of,
)
from pipesched.compiled import compiled

# Roles of a pass, and a full backward.
_F, _B, _W, _BW = 0, 1, 2, 3

# A row for each depth: starts and ticks of passes; of devices the last pass, the work left and the memory held. Then a
# number for each: the passes in order and the backwards that are split, as bits.
_Depths = tuple[Numbers, Numbers, Numbers, Numbers, Numbers, Numbers, Numbers]


@compiled
def search(passes: Numbers, room: Numbers, span: bool, limit: int, enough: int, most: int) -> int:
    """The least value of a schedule, or one that is at most `enough`; in sixths of a tick.

    -1 if none is at most `limit`, -2 after `most` slots were tried. A device's start is a node of its own after the
    pairs' three.
    """
    pairs, devices = passes.shape[1], len(room)
    least, work = least_ticks(passes, passes[BLOCK].max() >= 0 or passes[SAVES].max() >= 0)
    needs, tails = needs_of(passes), tails_of(passes, least, devices, span)
    every = (1 << 3 * pairs) - 1
    of = _depths(passes, least, work, devices)
    start, ticks, last, left, memory, done, split = of
    # What may be next on a device: so many choices of each depth, and how many of them were tried.
    choices = np.zeros((len(done), 4 * pairs + pairs * pairs), np.int64)
    count, at = np.zeros(len(done), np.int64), np.zeros(len(done), np.int64)
    previous, same = np.full(3 * pairs, -1), np.full(3 * pairs, -1)
    found, steps, depth, now = -1, 0, 0, limit
    order = done[0], split[0], previous, same
    if not settle(passes, (start[0], ticks[0], last[0], left[0]), order, tails, span, now):
        return -1
    count[0] = choose(passes, needs, start[0], memory[0], done[0], room, choices[0])
    while depth >= 0:
        if at[depth] == count[depth]:
            depth -= 1
            continue
        choice = choices[depth, at[depth]]
        at[depth] += 1
        steps += 1
        if steps > most:
            return -2
        child = depth + 1
        _put_next(passes, work, choice, depth, of, previous, same)
        order = done[child], split[child], previous, same
        own = start[child], ticks[child], last[child], left[child]
        if not settle(passes, own, order, tails, span, now):
            continue
        if done[child] == every:
            found = _value(passes, own, order, tails, span, now)
            if found <= enough:
                break
            now = found - 1
            continue
        count[child] = choose(passes, needs, start[child], memory[child], done[child], room, choices[child])
        at[child] = 0
        depth = child
    return found


@compiled
def _value(
    passes: Numbers,
    own: tuple[Numbers, Numbers, Numbers, Numbers],
    order: tuple[int, int, Numbers, Numbers],
    tails: Numbers,
    span: bool,
    most: int,
) -> int:
    """Of passes that are all in order, which `most` allows: found by halving."""
    least = 0
    while least < most:
        middle = (least + most) // 2
        if settle(passes, (own[0].copy(), own[1], own[2], own[3]), order, tails, span, middle):
            most = middle
        else:
            least = middle + 1
    return least


@compiled
def _depths(passes: Numbers, least: Numbers, work: Numbers, devices: int) -> _Depths:
    """Zeros for all depths, with nothing in order yet at the first."""
    pairs = passes.shape[1]
    deep = 3 * pairs + 2
    start = np.zeros((deep, 3 * pairs + devices), np.int64)
    ticks = np.zeros((deep, 3 * pairs), np.int64)
    last = np.full((deep, devices), -1)
    left, memory = np.zeros((deep, devices), np.int64), np.zeros((deep, devices), np.int64)
    done, split = np.zeros(deep, np.int64), np.zeros(deep, np.int64)
    ticks[0] = least
    for k in range(pairs):
        left[0, passes[DEVICE, k]] += least[3 * k] + work[k]
    return start, ticks, last, left, memory, done, split


@compiled
def _put_next(
    passes: Numbers, work: Numbers, choice: int, depth: int, of: _Depths, previous: Numbers, same: Numbers
) -> None:
    """Put a choice last on its device: what is known of the next depth, but for starts, follows from that of this one.

    `previous` is the pass before each pass in order on its device, `same` the other one of its block; -1 for none.
    """
    start, ticks, last, left, memory, done, split = of
    child = depth + 1
    for whole in (start, ticks, last, left, memory):
        whole[child] = whole[depth]
    split[child] = split[depth]
    role, k, mate = choice // 10000, choice // 100 % 100, choice % 100
    device = passes[DEVICE, k]
    node = 3 * k + (_B if role == _BW else role)
    done[child] = done[depth] | 1 << node
    if role == _F:
        memory[child, device] += passes[ACTIVATION, k]
        left[child, device] -= ticks[depth, node]
        ticks[child, node] = passes[FORWARD, k]
    elif role == _B:
        memory[child, device] -= passes[FREED, k]
        left[child, device] += passes[WEIGHT, k] - work[k]
        ticks[child, node] = passes[BACKWARD, k]
        split[child] |= 1 << k
    elif role == _W:
        memory[child, device] += passes[FREED, k] - passes[ACTIVATION, k]
        left[child, device] -= passes[WEIGHT, k]
    else:
        memory[child, device] -= passes[ACTIVATION, k]
        left[child, device] -= work[k]
        ticks[child, node] = passes[FUSED, k]
        done[child] |= 1 << 3 * k + _W
    previous[node], same[node] = last[depth, device], -1
    last[child, device] = node
    if role == _F and mate < 99:
        other = 3 * mate + _B
        memory[child, device] -= passes[ACTIVATION, mate]
        left[child, device] -= work[mate]
        ticks[child, node] = ticks[child, other] = block_ticks(passes, k, mate)
        done[child] |= 3 << other
        previous[other] = previous[node]
        same[node], same[other] = other, node
