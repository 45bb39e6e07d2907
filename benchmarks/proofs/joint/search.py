"""Search over the orders of all devices together for a schedule within a limit: compiled.

Each step puts a pass next on one device, and raises the starts of all passes to the least that this allows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.proofs.joint.choices import choose, needs_of
from benchmarks.proofs.joint.limits import (
    ACTIVATION,
    BACKWARD,
    BLOCK,
    DEVICE,
    FORWARD,
    FREED,
    FUSED,
    WEIGHT,
    Numbers,
    least_ticks,
    settle,
    tails_of,
)

# Roles of a pass, and a full backward.
_F, _B, _W, _BW = 0, 1, 2, 3


@njit(cache=True)
def search(passes: Numbers, room: Numbers, span: bool, limit: int, below: int, most: int) -> int:  # noqa: PLR0912, PLR0915
    """2 if a schedule's value is at most `below`, 1 if one's is at most `limit`, else 0; in sixths of a tick.

    -1 after `most` slots were tried. A device's start is a node of its own behind the pairs' three.
    """
    pairs, devices = passes.shape[1], len(room)
    n = 3 * pairs
    blocks = passes[BLOCK].max() >= 0
    least, work = least_ticks(passes, blocks)
    needs, tails = needs_of(passes), tails_of(passes, least, devices, span)
    every = 0
    for k in range(pairs):
        every |= 7 << 3 * k
    # Of each depth: starts, durations, last slots, memory held and work left; and what may be next on a device.
    deep = 3 * pairs + 2
    start = np.zeros((deep, n + devices), np.int64)
    ticks = np.zeros((deep, n), np.int64)
    last = np.full((deep, devices), -1)
    held = np.zeros((deep, devices), np.int64)
    left = np.zeros((deep, devices), np.int64)
    done = np.zeros(deep, np.int64)
    split = np.zeros(deep, np.int64)
    choices = np.zeros((deep, 4 * pairs + pairs * pairs), np.int64)
    count = np.zeros(deep, np.int64)
    at = np.zeros(deep, np.int64)
    previous = np.full(n, -1)
    same = np.full(n, -1)
    ticks[0] = least
    for k in range(pairs):
        left[0, passes[DEVICE, k]] += least[3 * k] + work[k]
    found, steps, depth = 0, 0, 0
    now = limit
    order = done[0], split[0], previous, same
    if not settle(passes, (start[0], ticks[0], last[0], left[0]), order, tails, span, now):
        return 0
    count[0] = choose(passes, needs, start[0], held[0], done[0], room, choices[0])
    while depth >= 0:
        if at[depth] == count[depth]:
            depth -= 1
            continue
        choice = choices[depth, at[depth]]
        at[depth] += 1
        steps += 1
        if steps > most:
            return -1
        role, k, mate = choice // 10000, choice // 100 % 100, choice % 100
        child = depth + 1
        start[child], ticks[child], last[child] = start[depth], ticks[depth], last[depth]
        held[child], left[child], split[child] = held[depth], left[depth], split[depth]
        device = passes[DEVICE, k]
        node = 3 * k + (_B if role == _BW else role)
        ran = done[depth] | 1 << node
        same[node] = -1
        if role == _F:
            held[child, device] += passes[ACTIVATION, k]
            left[child, device] -= least[node]
            ticks[child, node] = passes[FORWARD, k]
        elif role == _B:
            held[child, device] -= passes[FREED, k]
            left[child, device] += passes[WEIGHT, k] - work[k]
            ticks[child, node] = passes[BACKWARD, k]
            split[child] |= 1 << k
        elif role == _W:
            held[child, device] += passes[FREED, k] - passes[ACTIVATION, k]
            left[child, device] -= passes[WEIGHT, k]
        else:
            held[child, device] -= passes[ACTIVATION, k]
            left[child, device] -= work[k]
            ticks[child, node] = passes[FUSED, k]
            ran |= 1 << 3 * k + _W
        previous[node] = last[depth, device]
        last[child, device] = node
        if role == _F and mate < 99:
            other = 3 * mate + _B
            held[child, device] -= passes[ACTIVATION, mate]
            left[child, device] -= work[mate]
            ticks[child, node] = passes[BLOCK, k]
            ticks[child, other] = passes[BLOCK, k]
            ran |= 3 << other
            previous[other] = previous[node]
            same[node], same[other] = other, node
        done[child] = ran
        order = ran, split[child], previous, same
        own = start[child], ticks[child], last[child], left[child]
        if not settle(passes, own, order, tails, span, now):
            continue
        if ran == every:
            if now == below or settle(passes, own, order, tails, span, below):
                return 2
            found, now = 1, below
            continue
        count[child] = choose(passes, needs, start[child], held[child], ran, room, choices[child])
        at[child] = 0
        depth = child
    return found
