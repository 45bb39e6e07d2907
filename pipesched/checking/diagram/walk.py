"""The passes of some stages as arrays: steps, chain by chain, least times between them, memory.

A pass in a block with one of a stage that is not kept is that pass alone, in the least time that it can take; one that
is in no such block takes its own.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from pipesched.checking.devices.least_times import LeastTimes, least_durations, least_times
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem

Numbers = np.ndarray[Any, np.dtype[np.int64]]

MOST_TICKS, _MOST_STATES = 2**50, 2**62
# No device; and what follows an end that nothing that counts waits for.
NONE, NOTHING = -1, -(2**60)


class Steps(NamedTuple):
    """What micro-batches do, in turn: chain by chain forwards, then gradients. Arrays by step, or by device.

    `lag` is the time from the end of the step before to the start of a step, `after` what a backward takes when its
    gradient has run, `soonest[n, d]` the least time from the end of the step before n to the start of one on device d,
    from n on; -1 where there is none. `together[n, g]` is what a block of forward n and gradient g takes, -1 without.
    `first` and `last` are the steps of the chain, which `number` micro-batches run, `admitted` at most between these
    two at once, with times from `column` on; all chains have so many `columns`. `behind` is the time from the end of a
    chain's last step until its micro-batch is done. A run of each step adds `weights` to the key of a state.

    `room` is -1 without a limit, `open_` the least memory of a weight pass that has not run, `weight` the longest. The
    ends of `counted` devices are bounded. Where only the `owner`'s time counts, else -1, `past` is so early that all
    before its first step may have ended by 0.
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
    behind: Numbers
    weights: Numbers
    room: Numbers
    open_: Numbers
    weight: Numbers
    counted: Numbers
    columns: int
    owner: int
    past: int


class Walk(NamedTuple):
    """Steps, the stage of each, when a micro-batch alone `ends` it, the devices, and the ticks of all in turn."""

    steps: Steps
    stages: Numbers
    ends: Numbers
    devices: tuple[int, ...]
    longest: int


def walk_along(problem: Problem, stages: tuple[int, ...], owner: int | None) -> Walk:
    """Along these stages; devices come in the order in which they do."""
    where, held, times = problem.placement, problem.stages, least_times(problem)
    every, back, start, least, first, last, number, admitted, column, behind = _ways(problem, times, stages, owner)
    devices = tuple(dict.fromkeys(where.stage_device[stage] for stage in stages))
    on = np.array([devices.index(where.stage_device[stage]) for stage in every], np.int64)
    turn, ends = np.arange(len(every)), start + least
    before = np.where(turn == first, 0, np.roll(ends, 1))
    durations = [least_durations(problem, s, set(where.on_device_of(s)) - set(stages)) for s in every.tolist()]
    forward, gradient, backward = np.array(durations, np.int64).T
    ticks, after = np.where(back, gradient, forward), np.where(back, backward - gradient, 0)
    overlapped = np.array([-1 if (own := held[s].overlapped) is None else own for s in every], np.int64)
    may_meet = (on[:, None] == on) & (back[:, None] < back)
    together = np.where(may_meet, overlapped[:, None], -1)
    bases = np.where(turn < last, admitted, np.where(turn == last[0], 0, number)) + 1
    longest = int(((ticks + after + start - before + together.max(axis=1).clip(0)) * number).sum())
    if longest > MOST_TICKS or prod(bases.tolist()) > _MOST_STATES:
        raise NotCoveredError("numbers of too many digits")
    open_ = [min(_left_open(problem, s) for s in stages if where.stage_device[s] == one) for one in devices]
    rooms, makespan = [problem.room[one] for one in devices], problem.objective is Objective.MAKESPAN
    counted = range(len(devices)) if makespan else [] if owner is None else [devices.index(owner)]
    steps = Steps(
        device=on,
        ticks=ticks,
        after=after,
        lag=start - before,
        memory=np.array([held[s].activation for s in every], np.int64) * np.where(back, -1, 1),
        soonest=_soonest(on, start, before, last, len(devices)),
        together=together,
        first=first,
        last=last,
        number=number,
        admitted=admitted,
        column=column,
        behind=np.where(turn == last, behind, NOTHING),
        weights=_weights(bases, first, last),
        room=np.array([-1 if room is None else room for room in rooms], np.int64),
        open_=np.array(open_, np.int64),
        weight=np.array([after[on == n].max() for n in range(len(devices))], np.int64),
        counted=np.array(counted, np.int64),
        columns=int(column[-1] + admitted[-1]),
        owner=NONE if owner is None else devices.index(owner),
        past=0 if owner is None else -2 * longest,
    )
    return Walk(steps, every, ends, devices, longest)


def _ways(problem: Problem, times: list[LeastTimes], stages: tuple[int, ...], owner: int | None) -> Numbers:
    """Chain by chain what is known of each step, as above; after the stage whether it is a gradient, and its times."""
    found, columns = list[tuple[int, ...]](), 0
    for chain in problem.placement.chains:
        kept = [stage for stage in chain if stage in stages]
        if not kept:
            continue
        first, last, top = len(found), len(found) + 2 * len(kept) - 1, times[kept[0]]
        # With an owner a chain's first step may come at any time, and only what the owner runs counts.
        away, behind = (0, 0) if owner is None else (top.begins, NOTHING)
        if owner is None and kept[0] != chain[0]:  # until the chain's first stage has nothing left of its backward
            behind = times[chain[0]].turns + times[chain[0]].backward - top.returned
        own = (first, last, len(problem.microbatches_of[kept[0]]), _admitted(problem, kept[0]), columns, behind)
        found += [(s, 0, times[s].begins - away, times[s].forward, *own) for s in kept]
        found += [(s, 1, times[s].turns - away, times[s].gradient, *own) for s in reversed(kept)]
        columns += own[3]
        if own[3] < 1:
            raise RefusedEvidenceError("nothing is admitted")
    return np.array(found, np.int64).T.copy()


def _admitted(problem: Problem, stage: int) -> int:
    """How many micro-batches are at once between a stage's forward and its gradient, at most."""
    count, taken = len(problem.microbatches_of[stage]), problem.stages[stage].activation
    room = problem.room[problem.placement.stage_device[stage]]
    return count if room is None or taken <= 0 else min(count, room // taken)


def _left_open(problem: Problem, stage: int) -> int:
    """What a weight pass that has not run holds."""
    own = problem.stages[stage]
    return own.activation - (0 if own.weight is None else own.freed)


def _soonest(device: Numbers, start: Numbers, before: Numbers, last: Numbers, devices: int) -> Numbers:
    found = np.full((len(device), devices), -1, np.int64)
    for n in range(len(device)):
        for later in range(last[n], n - 1, -1):
            found[n, device[later]] = start[later] - before[n]
    return found


def _weights(bases: Numbers, first: Numbers, last: Numbers) -> Numbers:
    """So that digits are what steps have run less the chain's last one, and that of each chain but the first."""
    found = np.cumprod(np.append(1, bases[:-1]))
    for n in np.unique(last):
        found[n] = (found[n] if n > last[0] else 0) - found[first[n] : n].sum()
    return found


def runs_of(keys: Numbers, done: int, steps: Steps) -> Numbers:
    """How often each step has run in states with these keys, with so many steps run in all."""
    run, left, size = np.zeros((len(keys), len(steps.ticks)), np.int64), keys, steps.last[0] + 1
    for n, last in enumerate(steps.last):
        base = (steps.admitted[n] if n < last else steps.number[n] if n >= size else 0) + 1
        run[:, n], left = left % base, left // base
        if n == last:
            run[:, steps.first[n] : n] += run[:, n : n + 1]
    run[:, :size] += (done - run.sum(axis=1, keepdims=True)) // size
    return run
