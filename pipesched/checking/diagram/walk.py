"""The passes of some stages as arrays: steps, chain by chain, least times between them, memory.

A chain's kept stages run forwards in turn, then gradients. What a stage that is not kept takes is time that passes; a
pass in a block with one of them is that pass alone, in the least time that it can take; one that is in no such block
takes its own.
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
# No device, or not the end of a chain's way.
NONE, NOTHING = -1, -(2**60)


class Steps(NamedTuple):
    """What micro-batches do, in turn: chain by chain forwards, then gradients. Arrays by step, or by device.

    `lag` is the time from the end of the step before to the start of a step, `after` what a backward takes when its
    gradient has run, `soonest[n, d]` the least time from the end of the step before n to the start of one on device d,
    from n on; -1 where there is none. `together[n, g]` is what a block of forward n and gradient g takes, -1 without.
    `first` and `last` are the steps of the chain, which `number` micro-batches run, `admitted` at most between these
    two at once, whose times are from `column` on, `columns` those of all chains. `behind` is the time from the end of
    a chain's last step until its micro-batch is done, where that counts. A run of each step adds `weights` to the key
    of a state.

    `room` is -1 without a limit, `open_` the least memory of a weight pass that has not run, `weight` the longest;
    `counted` devices are those whose end is what the bound is. Where only the `owner`'s time counts, else -1, `past`
    is so early that all before its first step may have ended by 0.
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
    stages: tuple[int, ...]
    ends: Numbers
    devices: tuple[int, ...]
    longest: int


class _Chain(NamedTuple):
    """Of a chain: its stages that are kept, and its first one."""

    kept: tuple[int, ...]
    begins: int

    @property
    def both_ways(self) -> tuple[int, ...]:
        return (*self.kept, *self.kept[::-1])


def walk_along(problem: Problem, stages: tuple[int, ...], owner: int | None) -> Walk:
    """Along these stages; devices come in the order in which they do."""
    where, times = problem.placement.stage_device, least_times(problem)
    chains = [_Chain(tuple(s for s in chain if s in stages), chain[0]) for chain in problem.placement.chains]
    chains = [chain for chain in chains if chain.kept]
    every = tuple(stage for chain in chains for stage in chain.both_ways)
    devices = tuple(dict.fromkeys(where[stage] for stage in stages))
    device = np.array([devices.index(where[stage]) for stage in every], np.int64)
    back = np.concatenate([np.arange(2 * len(one.kept)) >= len(one.kept) for one in chains])
    last = np.cumsum([2 * len(one.kept) for one in chains]) - 1
    first = np.append(0, last[:-1] + 1)
    sizes = last - first + 1
    starts = np.array([times[s].turns if g else times[s].begins for s, g in zip(every, back, strict=True)], np.int64)
    if owner is not None:  # a chain's first step may come at any time
        starts -= np.repeat(starts[first], sizes)
    ends = starts + np.array([times[s].gradient if g else times[s].forward for s, g in zip(every, back, strict=True)])
    before = np.append(0, ends[:-1])
    before[first] = 0
    own = [least_durations(problem, s, set(problem.placement.stages_of[where[s]]) - set(stages)) for s in every]
    ticks = np.array([one[1] if g else one[0] for one, g in zip(own, back, strict=True)], np.int64)
    after = np.array([one[2] - one[1] if g else 0 for one, g in zip(own, back, strict=True)], np.int64)
    number = np.array([len(problem.microbatches_of[one.begins]) for one in chains], np.int64)
    admitted = np.array([admitted_to(problem, one.kept[0]) for one in chains], np.int64)
    if admitted.min() < 1:
        raise RefusedEvidenceError("nothing is admitted")
    together = _blocks(problem, every, device, back)
    behind = np.full(len(every), NOTHING, np.int64)
    if owner is None:
        behind[last] = [_behind(times, one) for one in chains]
    longest = int((np.repeat(number, sizes) * (ticks + after + starts - before + together.max(axis=1).clip(0))).sum())
    bases = [[int(a) + 1] * (int(size) - 1) + [int(m) + 1] for a, m, size in zip(admitted, number, sizes, strict=True)]
    if longest > MOST_TICKS or prod(n for one in bases for n in one) // bases[0][-1] > _MOST_STATES:
        raise NotCoveredError("numbers of too many digits")
    open_ = [min(_left_open(problem, s) for s in stages if where[s] == one) for one in devices]
    steps = Steps(
        device=device,
        ticks=ticks,
        after=after,
        lag=starts - before,
        memory=np.array([problem.stages[s].activation for s in every], np.int64) * np.where(back, -1, 1),
        soonest=_soonest(device, starts, before, np.repeat(last, sizes), len(devices)),
        together=together,
        first=np.repeat(first, sizes),
        last=np.repeat(last, sizes),
        number=np.repeat(number, sizes),
        admitted=np.repeat(admitted, sizes),
        column=np.repeat(np.cumsum(admitted) - admitted, sizes),
        behind=behind,
        weights=_weights(bases),
        room=np.array([-1 if problem.room[one] is None else problem.room[one] for one in devices], np.int64),
        open_=np.array(open_, np.int64),
        weight=np.array([after[device == n].max() for n in range(len(devices))], np.int64),
        counted=_counted(problem, devices, owner),
        columns=int(admitted.sum()),
        owner=NONE if owner is None else devices.index(owner),
        past=0 if owner is None else -2 * longest,
    )
    return Walk(steps, every, ends, devices, longest)


def _counted(problem: Problem, devices: tuple[int, ...], owner: int | None) -> Numbers:
    if problem.objective is Objective.MAKESPAN:
        return np.arange(len(devices), dtype=np.int64)
    return np.array([] if owner is None else [devices.index(owner)], np.int64)


def _behind(times: list[LeastTimes], chain: _Chain) -> int:
    """From the end of the last kept step until the chain's first stage has nothing left of its backward."""
    if chain.kept[0] == chain.begins:  # that counts on its device
        return 0
    first = times[chain.begins]
    return first.turns + first.backward - times[chain.kept[0]].returned


def _weights(bases: list[list[int]]) -> Numbers:
    """So that digits are what steps have run less the chain's last one, and that of each chain but the first."""
    found, unit = list[int](), 1
    for one in bases:
        since = len(found)
        for base in one[:-1]:
            found.append(unit)
            unit *= base
        found.append((unit if since else 0) - sum(found[since:]))
        unit *= one[-1] if since else 1
    return np.array(found, np.int64)


def _soonest(device: Numbers, starts: Numbers, before: Numbers, last: Numbers, devices: int) -> Numbers:
    found = np.full((len(device), devices), -1, np.int64)
    for n in range(len(device)):
        for later in range(last[n], n - 1, -1):
            found[n, device[later]] = starts[later] - before[n]
    return found


def _blocks(problem: Problem, stages: tuple[int, ...], device: Numbers, back: np.ndarray[Any, Any]) -> Numbers:
    found = np.full((len(stages), len(stages)), -1, np.int64)
    for n, stage in enumerate(stages):
        ticks = problem.stages[stage].overlapped
        if ticks is not None and not back[n]:
            found[n, back & (device == device[n])] = ticks
    return found


def _left_open(problem: Problem, stage: int) -> int:
    """What a weight pass that has not run holds."""
    own = problem.stages[stage]
    return own.activation - (0 if own.weight is None else own.freed)


def admitted_to(problem: Problem, stage: int) -> int:
    """How many micro-batches are at once between a stage's forward and its gradient, at most."""
    count, taken = len(problem.microbatches_of[stage]), problem.stages[stage].activation
    room = problem.room[problem.placement.stage_device[stage]]
    return count if room is None or taken <= 0 else min(count, room // taken)
