"""How long the rest takes at least from every state of every layer: one pass backwards with one label a state.

The value of an order is the largest, over all times of its label, of the time and what takes its place at the end: each
step or block changes the times by sums and maxima only. So that rest is known for each time of a label, and over all
steps and blocks that may be next the least of each is taken.
"""

from __future__ import annotations

from threading import Event
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import compiled, substituted
from solver.diagram.moves import most_moves, moves_from, raised_by
from solver.diagram.steps import NONE, Kept, Numbers, Steps, ways_to_place

Short = NDArray[np.int32]

# What a time that decides nothing adds, and what is more than any rest: so that sums fit into 32 bits.
NOTHING, ENDLESS = -(2**29), 2**29


class Rests(NamedTuple):
    """The keys of the states of a layer, sorted, and by state and time of a label what follows at least."""

    keys: Numbers
    rests: Short


def completion(steps: Steps, most: int, stop: Event) -> list[Rests] | None:
    """By number of steps done; None where there are more than so many numbers, or too large ones, or after a stop."""
    count, devices = len(steps.ticks) * steps.microbatches, len(steps.room)
    size, keys, behind = steps.in_flight + 2 * devices, [np.zeros(1, np.int64)], np.empty(0, np.int64)
    for done in range(count):
        near, far = keys_after(keys[-1], steps, done)
        keys.append(np.unique(np.concatenate([near, behind])))
        behind = far
        most -= size * len(keys[-1])
        if most < 0 or longest_of(steps) >= ENDLESS or stop.is_set():
            return None
    last = np.full((len(keys[-1]), size), NOTHING, np.int32)
    last[:, steps.in_flight + devices :][:, slice(None) if steps.makespan else slice(1)] = 0
    found = [Rests(np.empty(0, np.int64), np.empty((0, size), np.int32)), Rests(keys[-1], last)]
    for done in reversed(range(count)):
        found.append(Rests(keys[done], rests_before(keys[done], steps, done, found[-1], found[-2])))
        if stop.is_set():
            return None
    return found[:0:-1]


def numbers_of(kept: Kept) -> int:
    """About how many numbers there are in all at most, as memory leaves out states that are counted."""
    count, flying = len(kept.steps.ticks), kept.steps.in_flight
    return ways_to_place(flying, count) * count * kept.steps.microbatches * (flying + 2 * len(kept.steps.room))


def longest_of(steps: Steps) -> int:
    """The ticks of all passes one after the other; a block may take longer than both of its passes."""
    in_blocks = steps.blocks.max(axis=1).clip(min=0).sum()
    return steps.microbatches * int(steps.ticks.sum() + steps.later.sum() + steps.lag.sum() + in_blocks)


@compiled
def keys_after(keys: Numbers, steps: Steps, done: int) -> tuple[Numbers, Numbers]:
    """The states after each step that may be next, and after each block; the same one more than once."""
    ran, pending, (most_steps, most_blocks) = (
        np.zeros_like(steps.ticks),
        np.zeros_like(steps.ticks),
        most_moves(steps.blocks),
    )
    moves, more = np.empty((most_steps + most_blocks, 2), np.int64), raised_by(steps)
    near, far = np.empty(len(keys) * most_steps, np.int64), np.empty(len(keys) * most_blocks, np.int64)
    found, found_far = 0, 0
    for key in keys:
        for move in range(moves_from(key, steps, done, ran, pending, moves)):
            if moves[move, 1] == NONE:
                near[found] = key + more[moves[move, 0]]
                found += 1
            else:
                far[found_far] = key + more[moves[move, 0]] + more[moves[move, 1]]
                found_far += 1
    return near[:found], far[:found_far]


@compiled
def rests_before(keys: Numbers, steps: Steps, done: int, near: Rests, far: Rests) -> Short:
    """What follows from each state, of what follows after each step and after each block that may be next."""
    found = np.full((len(keys), near.rests.shape[1]), ENDLESS, np.int32)
    ran, pending, row = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks), np.zeros(found.shape[1], np.int64)
    moves, more = np.empty((sum(most_moves(steps.blocks)), 2), np.int64), raised_by(steps)
    for state in range(len(keys)):
        for move in range(moves_from(keys[state], steps, done, ran, pending, moves)):
            step, gradient = moves[move, 0], moves[move, 1]
            if gradient == NONE:
                rest = near.rests[np.searchsorted(near.keys, keys[state] + more[step])]
            else:
                rest = far.rests[np.searchsorted(far.keys, keys[state] + more[step] + more[gradient])]
            before(row, rest, step, gradient, pending[step], ran, steps)
            for time in range(len(row)):
                found[state, time] = max(NOTHING, min(np.int64(found[state, time]), row[time]))
    return found


@substituted  # as a call it takes twice as long
def before(row: Numbers, rest: Numbers, step: int, gradient: int, pending: int, ran: Numbers, steps: Steps) -> None:
    """Fill in what follows each time, of what follows the times after a step or a block."""
    most, whole, device = steps.in_flight, steps.in_flight + len(steps.room), steps.device[step]
    ticks = steps.ticks[step] if gradient == NONE else steps.blocks[step, gradient]
    work = ticks + steps.later[step] if gradient == NONE else ticks
    shift = 1 if max(step, gradient) == len(ran) - 1 else 0  # the oldest micro-batch is through
    started = max(ticks + rest[most + device], work + rest[whole + device])
    if ran[step] >= shift:
        started = max(started, ticks + rest[ran[step] - shift])
    if gradient != NONE and ran[gradient] >= shift:
        started = max(started, ticks + rest[ran[gradient] - shift])
    for other in range(most, len(row)):
        started = max(started, np.int64(rest[other]))  # nothing starts before this step does
        row[other] = rest[other]
    for other in range(most):
        row[other] = rest[other - shift] if shift <= other < ran[0] else NOTHING
    if step > 0:
        row[ran[step]] = started + steps.lag[step]
    if gradient != NONE:
        row[ran[gradient]] = started + steps.lag[gradient]
    row[most + device] = started
    row[whole + device] += work
    if pending >= 0:
        row[whole + device] = max(row[whole + device], started - pending * steps.longest[device])
