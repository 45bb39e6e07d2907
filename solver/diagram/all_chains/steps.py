"""What a problem is relaxed to: the forwards and gradients of all chains on some devices, as steps in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.critical_paths import Paths, durations
from solver.diagram.steps import Numbers, walked_chains

# Sums of all ticks must stay far below what 64 bits hold, and so must the keys of states.
_MOST_TICKS, _MOST_KEYS = 2**50, 2**62
NONE = -1


class ChainSteps(NamedTuple):
    """The ways of micro-batches along their chains and back, on the devices that are kept; others are delays.

    By step: the number of its `device`, its `ticks` outside of blocks, what a backward takes after its gradient
    then (`later`), the `lag` from the end of the step before, or from time 0, the memory it `takes`, negative where
    it gives back, 1 for a `gradient`; the step `before` it or -1, the `last` one of its chain, how many
    `microbatches` walk it, where the times of those in flight begin in a label (`slot`), and what is left `after`
    its end until its chain's first stage is done. `reach[n, d]` is the least time from the end of step n - 1 to a
    step on device d, -1 where none follows.
    With a `counted` device, else -1, only its time counts, from its first start, which is 0: `after` then goes to the
    last step of the chain there, far below 0 where none is left, and `origin` stands for any time before.
    `blocks[n, g]` are the ticks of a forward and a full backward as one, or -1; `place[n]` is the weight of how many
    have done step n in a key.

    By device: its `room`, -1 without limit; the least memory of a `waiting` weight pass, the `longest` one, and what a
    block `saves` at most of all that its passes take, or, `sooner`, of forward and gradient alone.
    """

    device: Numbers
    ticks: Numbers
    later: Numbers
    lag: Numbers
    takes: Numbers
    gradient: Numbers
    before: Numbers
    last: Numbers
    microbatches: Numbers
    slot: Numbers
    after: Numbers
    reach: Numbers
    blocks: Numbers
    place: Numbers
    room: Numbers
    waiting: Numbers
    longest: Numbers
    saves: Numbers
    sooner: Numbers
    slots: int
    counted: int
    origin: int


class _Step(NamedTuple):
    """A forward or a gradient of a stage, and the time on devices that are not kept, before it and behind it."""

    stage: int
    forward: bool
    lag: int
    behind: int


def chain_steps(problem: Problem, paths: Paths, devices: Sequence[int]) -> ChainSteps | None:
    """None where nothing comes to the devices, or numbers grow too large. Of a span the first device counts."""
    where, stages = problem.placement.stage_device, problem.stages
    ways = [way for chain in walked_chains(problem) for way in [list(_way(problem, paths, chain, devices))] if way]
    every = [step for way in ways for step in way]
    count = len(every)
    device = np.array([devices.index(where[one.stage]) for one in every], np.int64)
    least = np.array([(paths.forward if one.forward else paths.gradient)[one.stage] for one in every], np.int64)
    alone = [durations(problem, one.stage, ()) for one in every]
    ticks = np.array([own[0 if one.forward else 1] for one, own in zip(every, alone, strict=True)], np.int64)
    later = np.array([0 if one.forward else own[2] - own[1] for one, own in zip(every, alone, strict=True)], np.int64)
    lag = np.array([one.lag for one in every], np.int64)
    microbatches = np.array([len(problem.microbatches_of[one.stage]) for one in every], np.int64)
    longest = int(((ticks + later + lag) * microbatches).sum())
    if not count or longest > _MOST_TICKS:
        return None
    base = int(microbatches.max()) + 1
    if base**count > _MOST_KEYS:
        return None
    before, last, slot, slots = _places(problem, ways)
    span = problem.objective is Objective.SPAN
    after = _after(every, least, last)
    if span:
        lag[before == NONE] = 0
        after = _after_on_first(device, least, lag, last, -2 * longest)
    blocks = _blocks(problem, every)
    rooms = [NONE if (room := problem.room[one]) is None else room for one in devices]
    held = [[one.stage for one in every if not one.forward and where[one.stage] == own] for own in devices]
    return ChainSteps(
        device=device,
        ticks=ticks,
        later=later,
        lag=lag,
        takes=np.array([stages[one.stage].activation * (1 if one.forward else -1) for one in every], np.int64),
        gradient=np.array([not one.forward for one in every], np.int64),
        before=before,
        last=last,
        microbatches=microbatches,
        slot=slot,
        after=after,
        reach=_reach(device, least, lag, last, len(devices)),
        blocks=blocks,
        place=np.array([base**n for n in range(count)], np.int64),
        room=np.array(rooms, np.int64),
        waiting=np.array([max(0, min((_waiting(problem, s) for s in own), default=0)) for own in held], np.int64),
        longest=np.array([later[device == own].max(initial=0) for own in range(len(devices))], np.int64),
        saves=_saved(device, ticks + later, blocks, len(devices)),
        sooner=_saved(device, ticks, blocks, len(devices)),
        slots=slots,
        counted=0 if span else NONE,
        origin=-longest if span else 0,
    )


def _way(problem: Problem, paths: Paths, chain: Sequence[int], devices: Sequence[int]) -> Iterator[_Step]:
    """The steps of a chain; `behind` is the way from the end of the last one until the first stage is done."""
    where, found, between = problem.placement.stage_device, list[_Step](), 0
    passes = [(stage, True) for stage in chain] + [(stage, False) for stage in reversed(chain)]
    for number, (stage, forward) in enumerate(passes):
        if number:
            between += problem.lag(passes[number - 1][0], stage)
        if where[stage] in devices:
            found.append(_Step(stage, forward, between, 0))
            between = 0
        elif number + 1 == len(passes):
            between += paths.rest[stage]  # nothing of this backward is left then
        else:
            between += (paths.forward if forward else paths.gradient)[stage]
    return iter([*found[:-1], *(one._replace(behind=between) for one in found[-1:])])


def _places(problem: Problem, ways: Sequence[Sequence[_Step]]) -> tuple[Numbers, Numbers, Numbers, int]:
    """The step before each, the last of its chain, and where the times of its chain begin; how many these are."""
    before, last, slot, slots = list[int](), list[int](), list[int](), 0
    for way in ways:
        since = len(before)
        before += [NONE, *range(since, since + len(way) - 1)]
        last += [since + len(way) - 1] * len(way)
        slot += [slots] * len(way)
        slots += _in_flight(problem, way[0].stage)
    return np.array(before, np.int64), np.array(last, np.int64), np.array(slot, np.int64), slots


def _in_flight(problem: Problem, stage: int) -> int:
    """How many micro-batches are between their first and their last kept step at once, at most: both are of a stage."""
    room, taken = problem.room[problem.placement.stage_device[stage]], problem.stages[stage].activation
    count = len(problem.microbatches_of[stage])
    return count if room is None or taken <= 0 else min(count, room // taken)


def _after(every: Sequence[_Step], least: Numbers, last: Numbers) -> Numbers:
    found = np.array([one.behind for one in every], np.int64)
    for step in reversed(range(len(every))):
        if last[step] != step:
            found[step] = every[step + 1].lag + least[step + 1] + found[step + 1]
    return found


def _after_on_first(device: Numbers, least: Numbers, lag: Numbers, last: Numbers, never: int) -> Numbers:
    """From the end of each step to that of the chain's last one on the first device; `never` where none is left."""
    found = np.full(len(device), never, np.int64)
    for step in reversed(range(len(device))):
        if last[step] != step and found[step + 1] != never:
            found[step] = lag[step + 1] + least[step + 1] + found[step + 1]
        elif device[step] == 0:
            found[step] = 0
    return found


def _reach(device: Numbers, least: Numbers, lag: Numbers, last: Numbers, devices: int) -> Numbers:
    found = np.full((len(device), devices), NONE, np.int64)
    for step in reversed(range(len(device))):
        if last[step] != step:
            further = found[step + 1]
            found[step] = np.where(further >= 0, lag[step] + least[step] + further, NONE)
        found[step, device[step]] = lag[step]
    return found


def _blocks(problem: Problem, every: Sequence[_Step]) -> Numbers:
    where, found = problem.placement.stage_device, np.full((len(every), len(every)), NONE, np.int64)
    for n, one in enumerate(every):
        for g, other in enumerate(every):
            if one.forward and not other.forward and where[one.stage] == where[other.stage]:
                ticks = problem.overlapped_ticks(Pass(F, one.stage, 0), Pass(BW, other.stage, 0))
                found[n, g] = NONE if ticks is None else ticks
    return found


def _saved(device: Numbers, work: Numbers, blocks: Numbers, devices: int) -> Numbers:
    """By device what a block takes less than its two passes, at most."""
    found = np.zeros(devices, np.int64)
    for n, g in np.argwhere(blocks >= 0):
        found[device[n]] = max(found[device[n]], work[n] + work[g] - blocks[n, g])
    return found


def _waiting(problem: Problem, stage: int) -> int:
    """What a weight pass that has not run holds."""
    own = problem.stages[stage]
    return own.activation - own.freed if problem.splittable else own.activation
