"""What a problem is relaxed to: the forwards and gradients of one chain on some devices, in turn, as steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.critical_paths import Paths

Numbers = NDArray[np.int64]

# The sum of all ticks must stay far below what 64 bits hold, and so must the keys of states.
_MOST_TICKS, _MOST_KEYS = 2**50, 2**62


class Steps(NamedTuple):
    """The way of a micro-batch along a chain and back, on the devices that are kept; others are delays.

    By step: the number of its `device`, its `ticks`, what a backward takes after its gradient (`later`), the `lag`
    from the end of the step before, and the memory it `takes`, negative where it gives back. `reach[n, d]` is the
    least time from the end of step n - 1 to a step on device d, -1 where none follows. By device: its `room`, -1
    without limit; the least memory of a `waiting` weight pass, the `longest` one, the memory of a `whole` micro-batch
    and the last `forward` step. `in_flight` micro-batches at most are between their first and their last step;
    `place[n]` is the weight of how many of them have done step n in the key of a state.
    """

    device: Numbers
    ticks: Numbers
    later: Numbers
    lag: Numbers
    takes: Numbers
    reach: Numbers
    room: Numbers
    waiting: Numbers
    longest: Numbers
    whole: Numbers
    forward: Numbers
    place: Numbers
    microbatches: int
    in_flight: int
    makespan: bool


def walked_chains(problem: Problem) -> Iterator[tuple[int, ...]]:
    """The chains that micro-batches walk."""
    for chain, walk in zip(problem.placement.chains, problem.walking, strict=True):
        if len(walk):
            yield chain


def steps_of(problem: Problem, paths: Paths, chain: Sequence[int], devices: Sequence[int]) -> Steps | None:
    """The steps of a chain on these devices, that of its first stage first; None where numbers grow too large."""
    where = problem.placement.stage_device
    rows = np.array(list(_rows(problem, paths, chain, devices)), np.int64).T
    device, ticks, later, lag, takes = map(np.ascontiguousarray, rows)
    count, most = len(problem.microbatches_of[chain[0]]), in_flight(problem, chain)
    place = [0, *((most + 1) ** n for n in range(len(device) - 1))]
    total = count * int(ticks.sum() + later.sum() + lag.sum())
    if total > _MOST_TICKS or (most + 1) * place[-1] > _MOST_KEYS or most < 1:
        return None
    held = [[s for s in chain if where[s] == one] for one in devices]
    rests = [[_waiting(problem, s) for s in stages] for stages in held]
    weights = [[paths.rest[s] - paths.gradient[s] for s in stages] for stages in held]
    rooms = [-1 if (room := problem.room[one]) is None else room for one in devices]
    return Steps(
        device=device,
        ticks=ticks,
        later=later,
        lag=lag,
        takes=takes,
        reach=_reach(device, ticks, lag, len(devices)),
        room=np.array(rooms, np.int64),
        waiting=np.array([max(0, min(rest)) for rest in rests], np.int64),
        longest=np.array([max(ticks) for ticks in weights], np.int64),
        whole=np.array([sum(problem.stages[s].activation for s in stages) for stages in held], np.int64),
        forward=np.array([np.flatnonzero(device == one)[len(held[one]) - 1] for one in range(len(held))], np.int64),
        place=np.array(place, np.int64),
        microbatches=count,
        in_flight=most,
        makespan=problem.objective is Objective.MAKESPAN,
    )


def _rows(
    problem: Problem, paths: Paths, chain: Sequence[int], devices: Sequence[int]
) -> Iterator[tuple[int, int, int, int, int]]:
    """Of each step: number of the device, ticks, what the backward takes after it, lag, and memory."""
    where, between, last = problem.placement.stage_device, 0, chain[0]
    for number, stage in enumerate((*chain, *reversed(chain))):
        forward = number < len(chain)
        ticks = paths.forward[stage] if forward else paths.gradient[stage]
        between += problem.lag(last, stage)
        last = stage
        if where[stage] in devices:
            later = 0 if forward else paths.rest[stage] - paths.gradient[stage]
            takes = problem.stages[stage].activation * (1 if forward else -1)
            yield devices.index(where[stage]), ticks, later, between, takes
            between = 0
        else:
            between += ticks


def in_flight(problem: Problem, chain: Sequence[int]) -> int:
    """How many micro-batches memory admits to the first stage between forward and gradient."""
    room, taken = problem.room[problem.placement.stage_device[chain[0]]], problem.stages[chain[0]].activation
    count = len(problem.microbatches_of[chain[0]])
    return count if room is None or taken <= 0 else min(count, room // taken)


def state_count(problem: Problem, chain: Sequence[int], devices: Sequence[int]) -> int:
    """About how many states a layer has, at most: ways to place micro-batches on the steps, in turn."""
    count = 2 * sum(problem.placement.stage_device[stage] in devices for stage in chain)
    return comb(count + in_flight(problem, chain), count) // count


def _waiting(problem: Problem, stage: int) -> int:
    """What a weight pass that has not run holds."""
    own = problem.stages[stage]
    return own.activation - own.freed if problem.splittable else own.activation


def _reach(device: Numbers, ticks: Numbers, lag: Numbers, devices: int) -> Numbers:
    found = np.full((len(device), devices), -1, np.int64)
    for step in reversed(range(len(device))):
        if step + 1 < len(device):
            after = found[step + 1]
            found[step] = np.where(after >= 0, lag[step] + ticks[step] + after, -1)
        found[step, device[step]] = lag[step]
    return found
