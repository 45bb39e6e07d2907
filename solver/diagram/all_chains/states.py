"""What a state of all chains says by itself, compiled: what may be next, what is left, and by when.

A state says how many micro-batches have done each step.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import compiled
from solver.diagram.all_chains.steps import NONE, ChainSteps
from solver.diagram.steps import Numbers
from solver.diagram.transitions import NEVER

_ANY, _NOT_NEXT = -1, -2


@compiled
def is_over(run: Numbers, steps: ChainSteps) -> bool:
    """Whether all steps have run, or those of the device that counts."""
    for step in range(len(run)):
        if steps.counted in (NONE, steps.device[step]) and run[step] < steps.microbatches[step]:
            return False
    return True


@compiled
def none_counted(run: Numbers, steps: ChainSteps) -> bool:
    """Whether there is a device that counts and has run no step: any time before its first one may have passed."""
    for step in range(len(run)):
        if steps.device[step] == steps.counted and run[step] > 0:
            return False
    return steps.counted != NONE


@compiled
def moves_of(key: int, steps: ChainSteps, run: Numbers, may: Numbers, moves: Numbers) -> int:
    """Fill in how many have done each step, how many weight passes may wait when it starts, and what may be next.

    A move is a step, and the gradient in a block with it or -1. -1 weight passes: memory does not say; -2: not next.
    """
    count, found, base = len(run), 0, steps.microbatches.max() + 1
    for step in range(count):
        run[step] = key % base
        key //= base
    for step in range(count):
        before = steps.before[step]
        comes = run[step] < (steps.microbatches[step] if before == NONE else run[before])
        may[step] = _pending(step, run, steps) if comes else _NOT_NEXT
    for step in range(count):
        if may[step] == _NOT_NEXT:
            continue
        moves[found, 0], moves[found, 1] = step, NONE
        found += 1
        for gradient in range(count):
            if steps.blocks[step, gradient] >= 0 and may[gradient] != _NOT_NEXT:
                moves[found, 0], moves[found, 1] = step, gradient
                found += 1
    return found


@compiled
def _pending(step: int, run: Numbers, steps: ChainSteps) -> int:
    """How many weight passes of its device may wait when a step starts, whichever chains they are of."""
    device, takes = steps.device[step], steps.takes[step]
    if takes <= 0 or steps.room[device] < 0:
        return _ANY
    room = steps.room[device] - takes
    for other in range(len(run)):
        if steps.device[other] == device:
            room -= steps.takes[other] * run[other]
    if room < 0:
        return _NOT_NEXT
    return int(room // steps.waiting[device]) if steps.waiting[device] > 0 else _ANY


@compiled
def fill_waiting(run: Numbers, steps: ChainSteps, waiting: Numbers) -> int:
    """Fill in the steps that are left, and which times of a label are those of micro-batches that come to each next.

    None for the first step of a chain. How many steps.
    """
    found = 0
    for step in range(len(run)):
        before, oldest = steps.before[step], steps.slot[step] + run[step] - run[steps.last[step]]
        since, until = (0, 0) if before == NONE else (oldest, oldest + run[before] - run[step])
        if since < until or (before == NONE and run[step] < steps.microbatches[step]):
            waiting[found, 0], waiting[found, 1], waiting[found, 2] = step, since, until
            found += 1
    return found


@compiled
def fill_latest(run: Numbers, steps: ChainSteps, value: int, latest: Numbers) -> None:
    """For each time of a label the first one too late for a micro-batch in flight, or the work left on a device."""
    devices, slots = len(steps.room), steps.slots
    latest[:] = NEVER
    for step in range(len(run)):
        before = steps.before[step]
        if before != NONE and run[before] > run[step]:
            newest = steps.slot[step] + run[before] - 1 - run[steps.last[step]]
            latest[newest] = min(latest[newest], value - steps.after[before])
    for device in range(devices):
        if steps.counted not in (NONE, device):
            continue
        passes, work, forwards, gradients, way = 0, 0, 0, 0, np.int64(NEVER)
        for step in range(len(run)):
            left = steps.microbatches[step] - run[step]
            if steps.device[step] != device or left == 0:
                continue
            passes += left * steps.ticks[step]
            work += left * (steps.ticks[step] + steps.later[step])
            if steps.gradient[step]:
                gradients += left
                way = min(way, steps.after[step])
            else:
                forwards += left
        blocks = min(forwards, gradients)
        latest[slots + devices + device] = value - work + blocks * steps.saves[device]
        if gradients:
            latest[slots + device] = value - passes + blocks * steps.sooner[device] - way
