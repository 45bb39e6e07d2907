"""The passes of some stages of a chain as arrays: steps, least times between them, memory.

Micro-batches of a chain are alike. If their names are exchanged on each stage by the order in which they run there,
what they wait for is still before them, and each device runs the same at the same times. So a stage's forwards run in
turn, and its gradients too. If each stage that is not kept were on a device of its own without a limit of memory, every
schedule would stay one, and take no longer: such stages are delays. A pass in a block with one of them is that pass
alone, in the least time that it can take; one that is in no such block takes its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.checking.devices.least_times import LeastTimes, least_durations, least_times
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem

Numbers = np.ndarray[Any, np.dtype[np.int64]]

_MOST_TICKS, _MOST_STATES = 2**50, 2**62


class Steps(NamedTuple):
    """What a micro-batch does, in turn: forwards, then gradients. Arrays by step, or by device.

    `before` is the time from the end of the step before to the start of a step, `after` what a backward takes when its
    gradient has run, `soonest[n, d]` the least time from the end of the step before n to the start of one on device d,
    from n on; -1 where there is none. `together[n, g]` is what a block of forward n and gradient g takes, -1 without.
    `room` is -1 without a limit, `open_` the least memory of a weight pass that has not run, `weight` the longest.
    """

    device: Numbers
    ticks: Numbers
    after: Numbers
    before: Numbers
    memory: Numbers
    soonest: Numbers
    together: Numbers
    room: Numbers
    open_: Numbers
    weight: Numbers
    microbatches: int
    admitted: int


class Walk(NamedTuple):
    """Steps, when a micro-batch alone `ends` each, their devices, and what the bound is.

    That is the latest end of the first `counted` ones, and the time `beside`.

    Where the chain's first stage does not count there is a device before all others, None, on which nothing runs. As
    no step starts before the last one did, on any device, its time is the start of the last step.
    """

    steps: Steps
    ends: Numbers
    devices: tuple[int | None, ...]
    counted: int
    beside: int
    longest: int


def walk_along(problem: Problem, stages: tuple[int, ...]) -> Walk:
    """Along these stages of a chain; devices come in the order in which the chain does to them first."""
    where, times = problem.placement.stage_device, least_times(problem)
    chain = next((chain for chain in problem.placement.chains if stages and stages[0] in chain), ())
    if not chain or stages != tuple(stage for stage in chain if stage in stages):
        raise RefusedEvidenceError(f"stages {list(stages)} are not those of a chain, in its order")
    if not len(problem.microbatches_of[chain[0]]):
        raise RefusedEvidenceError("no micro-batch walks the chain")
    only_last = stages[0] != chain[0]  # no more counts than the last gradient and what follows it
    own = tuple(dict.fromkeys(where[stage] for stage in stages))
    devices = (None, *own) if only_last else own
    steps, ends = _steps(problem, times, stages, devices)
    if steps.admitted < 1:
        raise RefusedEvidenceError("nothing is admitted")
    longest = int((steps.ticks + steps.after + steps.before).sum() + steps.together.max(axis=1).clip(0).sum())
    if steps.microbatches * longest > _MOST_TICKS or (steps.admitted + 1) ** (len(steps.ticks) - 1) > _MOST_STATES:
        raise NotCoveredError("numbers of too many digits")
    first, last = times[chain[0]], times[stages[0]]
    beside = first.turns + first.backward - last.turns + last.begins if only_last else 0
    every = not only_last and problem.objective is Objective.MAKESPAN
    return Walk(steps, ends, devices, len(devices) if every else 1, beside, steps.microbatches * longest)


def _steps(
    problem: Problem, times: list[LeastTimes], down: tuple[int, ...], devices: tuple[int | None, ...]
) -> tuple[Steps, Numbers]:
    """They, and the earliest end of each."""
    where, back = problem.placement.stage_device, down[::-1]
    device = np.array([devices.index(where[stage]) for stage in (*down, *back)], np.int64)
    away = times[down[0]].begins
    starts = np.array([times[s].begins - away for s in down] + [times[s].turns - away for s in back], np.int64)
    least = np.array([times[s].forward for s in down] + [times[s].gradient for s in back], np.int64)
    before = np.append(0, (starts + least)[:-1])
    own = [least_durations(problem, s, set(problem.placement.stages_of[where[s]]) - set(down)) for s in down]
    ticks = np.array([forward for forward, _, _ in own] + [gradient for _, gradient, _ in own[::-1]], np.int64)
    after = np.array([0] * len(down) + [backward - gradient for _, gradient, backward in own[::-1]], np.int64)
    of = [[s for s in down if where[s] == one] for one in devices]
    memory = np.array([problem.stages[s].activation for s in down], np.int64)
    steps = Steps(
        device=device,
        ticks=ticks,
        after=after,
        before=starts - before,
        memory=np.append(memory, -memory[::-1]),
        soonest=soonest_on(device, starts, before, [len(device) - 1] * len(device), len(devices)),
        together=blocks_of(problem, (*down, *back), device, np.arange(len(device)) >= len(down))[: len(down)],
        room=np.array([-1 if one is None else room_on(problem, one) for one in devices], np.int64),
        open_=np.array([min((left_open(problem, s) for s in own), default=0) for own in of], np.int64),
        weight=np.array([after[device == n].max(initial=0) for n in range(len(devices))], np.int64),
        microbatches=len(problem.microbatches_of[down[0]]),
        admitted=admitted_to(problem, down[0]),
    )
    return steps, starts + least


def soonest_on(device: Numbers, starts: Numbers, ends: Numbers, final: Sequence[int], devices: int) -> Numbers:
    """From the end of the step before each to the start of one on each device, up to its chain's final step."""
    found = np.full((len(device), devices), -1, np.int64)
    for n, last in enumerate(final):
        for one in range(devices):
            later = np.flatnonzero(device[n : last + 1] == one)
            if len(later):
                found[n, one] = starts[n + later[0]] - ends[n]
    return found


def blocks_of(problem: Problem, stages: Sequence[int], device: Numbers, backward: NDArray[np.bool_]) -> Numbers:
    """What a block of each forward and each gradient takes, by step; -1 where there is none."""
    found = np.full((len(stages), len(stages)), -1, np.int64)
    for n, stage in enumerate(stages):
        ticks = problem.stages[stage].overlapped
        if ticks is not None and not backward[n]:
            found[n, backward & (device == device[n])] = ticks
    return found


def room_on(problem: Problem, device: int) -> int:
    """The memory of a device for activations; -1 without a limit."""
    room = problem.room[device]
    return -1 if room is None else room


def left_open(problem: Problem, stage: int) -> int:
    """What a weight pass that has not run holds."""
    own = problem.stages[stage]
    return own.activation - (0 if own.weight is None else own.freed)


def admitted_to(problem: Problem, stage: int) -> int:
    """How many micro-batches are at once between a stage's forward and its gradient, at most."""
    count, taken = len(problem.microbatches_of[stage]), problem.stages[stage].activation
    room = room_on(problem, problem.placement.stage_device[stage])
    return count if room < 0 or taken <= 0 else min(count, room // taken)
