"""The passes of some stages as arrays: steps chain by chain, least times between them, memory.

A pass that may run in a block with a stage outside of these takes the least time it can have; any other pass takes its
own duration.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from pipesched.checking.devices.least_times import least_durations, least_times
from pipesched.checking.diagram.model import Numbers
from pipesched.checking.diagram.shared_digits import crowds_of, shared_digits, weights_in_digits
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.int64_arrays import int64_array
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks

MOST_TICKS, _MOST_STATES = 2**50, 2**62
# No device; and what follows an end that nothing that counts waits for.
NONE, NOTHING = -1, -(2**60)
# More memory than there is, of what no weight work holds.
_NO_WORK = 2**60


class Steps(NamedTuple):
    """Steps of micro-batches in order, chain by chain forwards, then gradients: arrays by step, or by device.

    By device are `room`, `open_` and `weight`; `counted` lists devices. Devices are numbers in `Walk.devices`. `memory`
    is what a forward takes, negated for the gradient, which frees it.

    `lag` is the time from the end of the previous step to the start of a step, `after` the remaining ticks of a
    backward after its gradient, `soonest[n, d]` the least time from the end of the step before n to the start of one on
    device d, from n on; -1 if there is none. `together[n, g]` are the ticks of a block of forward n and gradient g, -1
    without. `first` and `last` are the steps of the chain, run by `number` micro-batches, at most `admitted` between
    these two at once, with times from `column` on; all chains have `columns` times. `tail` is the time from the end of
    a chain's last step until its micro-batch is done. `bases` are those of the digits of a state's key: the count of
    each step less that of the chain's last one, and the latter for all but the first chain. If one chain has so many
    steps that this takes too many digits, several steps share one, and `crowds` has by its value how many micro-batches
    have last run each of them; else it is empty.

    `holder` is the gradient after which the weight work of one holds memory: itself, or that of another stage of which
    it is a task. In steps of memory, `room` is that of a device, -1 without a limit, `open_` the least that pending
    weight work occupies; `weight` are the most ticks of such work that occupy this memory together. The ends of
    `counted` devices are bounded. If only the `owner`'s time counts, else -1, `past` is so early that all before its
    first step may have ended by 0.
    """

    device: Numbers
    ticks: Numbers
    after: Numbers
    lag: Numbers
    memory: Numbers
    soonest: Numbers
    together: Numbers
    first: Numbers
    last: Numbers
    number: Numbers
    admitted: Numbers
    column: Numbers
    tail: Numbers
    holder: Numbers
    bases: Numbers
    crowds: Numbers
    room: Numbers
    open_: Numbers
    weight: Numbers
    counted: Numbers
    columns: int
    owner: int
    past: int


class Walk(NamedTuple):
    """The steps along some stages.

    By step, `stages` has its stage, and `ends` its end in ticks for a micro-batch that runs alone, from the start of
    its chain, or with an owner from that of the chain's first step here. `devices` are the devices of the stages.
    `longest` is the sum of the ticks of all steps of all micro-batches.
    """

    steps: Steps
    stages: Numbers
    ends: Numbers
    devices: tuple[DeviceId, ...]
    longest: Ticks


def walk_along(
    problem: Problem, stages: tuple[StageId, ...], owner: DeviceId | None, stage_of: tuple[StageId, ...] | None = None
) -> Walk:
    """Return the steps along these stages; devices are numbered in the order of their first stage.

    `stages` are in the order of chains. `owner` is the device whose span is bounded, None for the makespan. If stages
    are tasks, `stage_of` has by stage the original one; the weight tasks of one original stage occupy its memory
    together. None: each weight pass has memory of its own. Raises `NotCoveredError` if numbers are too large, and
    `RefusedEvidenceError` if memory admits no micro-batch to a chain.
    """
    where, all_stages = problem.placement, problem.stages
    every, back, start, ends, first, last, number, admitted, column, tail = _step_rows(problem, stages, owner)
    devices = tuple(dict.fromkeys(where.stage_device[stage] for stage in stages))
    device = int64_array([devices.index(where.stage_device[stage]) for stage in every])
    before = np.where(np.arange(len(every)) == first, 0, np.roll(ends, 1))
    least = [least_durations(problem, s, set(where.on_device_of(s)) - set(stages)) for s in every.tolist()]
    forward, gradient, backward = int64_array(least).T
    ticks, after, lag = np.where(back, gradient, forward), np.where(back, backward - gradient, 0), start - before
    blocks = [[all_stages[f].block_with(all_stages[b]) for b in every.tolist()] for f in every.tolist()]
    ticks_of_blocks = int64_array([[-1 if block is None else block for block in row] for row in blocks])
    together = np.where((device[:, None] == device) & (back[:, None] < back), ticks_of_blocks, -1)
    memory = int64_array([all_stages[s].activation for s in every]) * np.where(back, -1, 1)
    soonest, turn = np.full((len(every), len(devices)), -1, np.int64), np.arange(len(every))
    for n in turn:
        for later in range(last[n], n - 1, -1):
            soonest[n, device[later]] = start[later] - before[n]
    longest = int(((ticks + after + lag + together.max(axis=1).clip(0)) * number).sum())
    bases = np.where(turn < last, admitted, np.where(turn > last[0], number, 0)) + 1
    crowds = None
    if prod(bases.tolist()) <= _MOST_STATES:
        crowds = np.zeros((0, 1), np.int64)
    elif (first == 0).all():
        crowds = shared_digits(int(admitted[0]), int(last[0]), _MOST_STATES)
    if longest > MOST_TICKS or crowds is None:
        raise NotCoveredError("numbers of too many digits")
    room = int64_array([-1 if (own := problem.room[one]) is None else own for one in devices])
    left = int64_array(
        [all_stages[s].activation - (0 if all_stages[s].weight is None else all_stages[s].freed) for s in every]
    )
    holder, works = turn, after
    if stage_of is not None:
        holder = _holders(int64_array([stage_of[s] for s in every]), device, after, memory)
        works = np.bincount(holder, after, len(every)).astype(np.int64)
        left = np.where(works > 0, left, _NO_WORK)
    open_, weight = np.array([(left[device == n].min(), works[device == n].max()) for n in range(len(room))]).T.copy()
    counted = np.arange(len(room)) if problem.objective.from_zero else np.zeros(0, np.int64)
    whose, past = (NONE, 0) if owner is None else (devices.index(owner), -2 * longest)
    counted = counted if owner is None else np.array([whose])
    by_step = device, ticks, after, lag, memory, soonest, together, first, last, number, admitted, column, tail
    by_device = room, open_, weight, counted, int(column[-1] + admitted[-1]), whose, past
    steps = Steps(*by_step, holder, bases, crowds, *by_device)
    return Walk(steps, every, ends, devices, longest)


def _holders(stage: Numbers, device: Numbers, after: Numbers, memory: Numbers) -> Numbers:
    """Return by step the gradient whose memory its weight work occupies.

    It is the step itself, or the one that frees the stage's activation. The arguments have an entry for each step: its
    stage, its device, the remaining ticks of a backward after its gradient (`after`), and the memory that it takes
    (negative: frees).
    """
    found = np.arange(len(stage))
    for n in np.flatnonzero(after > 0):
        giving = np.flatnonzero((memory < 0) & (stage == stage[n]) & (device == device[n]))
        if len(giving):
            found[n] = giving[0]
    return found


def _step_rows(problem: Problem, stages: tuple[StageId, ...], owner: DeviceId | None) -> Numbers:
    """Return an array with a row for each quantity and a column for each step, chain by chain.

    The rows are: stage, 1 for a gradient and 0 for a forward, earliest start, earliest end; then the chain's first
    step, last step, number of micro-batches, number admitted at once, first column of times; and the `tail` of `Steps`.
    Raises `RefusedEvidenceError` if memory admits no micro-batch to a chain.
    """
    times, found, columns = least_times(problem), list[tuple[int, ...]](), 0
    for chain in problem.placement.chains:
        kept = [stage for stage in chain if stage in stages]
        if not kept:
            continue
        first, last, top = len(found), len(found) + 2 * len(kept) - 1, times[kept[0]]
        count, taken = len(problem.microbatches_of[kept[0]]), problem.stages[kept[0]].activation
        room = problem.room[problem.placement.stage_device[kept[0]]]
        admitted = count if room is None or taken <= 0 else min(count, room // taken)
        # With an owner a chain's first step may come at any time, and only what the owner runs counts.
        away, tail = (0, 0) if owner is None else (top.begins, NOTHING)
        if owner is None and kept[0] != chain[0]:  # until the chain's first stage has nothing left of its backward
            tail = times[chain[0]].gradient_begins + times[chain[0]].backward - top.returned
        of_chain = first, last, count, admitted, columns
        down = [(s, 0, times[s].begins, times[s].begins + times[s].forward) for s in kept]
        back = [(s, 1, times[s].gradient_begins, times[s].returned) for s in reversed(kept)]
        for n, (stage, is_gradient, start, end) in enumerate((*down, *back)):
            found.append(
                (stage, is_gradient, start - away, end - away, *of_chain, tail if first + n == last else NOTHING)
            )
        columns += admitted
        if admitted < 1:
            raise RefusedEvidenceError("nothing is admitted")
    return int64_array(found, -NOTHING).T.copy()


def weights_of(steps: Steps) -> Numbers:
    """Return by step the amount by which running it once raises the key of a state."""
    if len(steps.crowds):
        return np.diff(weights_in_digits(steps.crowds, int(steps.last[0])), prepend=0, append=0)
    found = np.cumprod(np.append(1, steps.bases[:-1]))
    for n in np.unique(steps.last):
        found[n] = (found[n] if n > steps.last[0] else 0) - found[steps.first[n] : n].sum()
    return found


def runs_of(keys: Numbers, done: int, steps: Steps) -> Numbers:
    """Return an array by state and step of how often the step has run.

    It follows from the keys and the number `done` of all steps run.
    """
    run, left, size = np.zeros((len(keys), len(steps.ticks)), np.int64), keys, steps.last[0] + 1
    if len(steps.crowds):
        run[:, :-1] = crowds_of(keys, steps.crowds, size - 1)[:, ::-1].cumsum(axis=1)[:, ::-1]
    for n, base in enumerate(steps.bases if not len(steps.crowds) else ()):
        run[:, n], left = left % base, left // base
        if n == steps.last[n]:
            run[:, steps.first[n] : n] += run[:, n : n + 1]
    run[:, :size] += (done - run.sum(axis=1, keepdims=True)) // size
    return run
