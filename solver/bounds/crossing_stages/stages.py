"""The steps of some stages of a chain: its other stages are delays, also those on the devices of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipesched.problem.problem import Problem
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_steps.steps import Numbers, Steps, in_flight

# As of crossings of steps: what 64 bits hold.
_MOST_TICKS, _MOST_KEYS = 2**50, 2**62


class KeptStages(NamedTuple):
    """The steps, which end when the last gradient starts, and what passes before the first step and from that start on.

    Device 0 of the steps has none: nothing on it starts before the last step did, which is what is asked for.
    """

    steps: Steps
    beside: int


def devices_of(problem: Problem, stages: Sequence[int]) -> tuple[int, ...]:
    """Their devices, in the order of the stages."""
    return tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in stages))


def steps_of_stages(problem: Problem, paths: Paths, chain: Sequence[int], stages: Sequence[int]) -> KeptStages | None:
    """Of stages in the order of the chain, as if each other one were on a device of its own, without a limit of memory.

    None where numbers are too large.
    """
    devices, first, count = devices_of(problem, stages), stages[0], len(stages)
    device = np.array([1 + devices.index(problem.placement.stage_device[stage]) for stage in (*stages, *stages[::-1])])
    starts, ticks, later = _times(paths, stages)
    before = np.append(0, (starts + ticks)[:-1])
    takes = np.array([problem.stages[stage].activation for stage in stages], np.int64)
    most = in_flight(problem, stages)
    total = len(problem.microbatches_of[first]) * int(starts[-1] + ticks[-1] + later.sum())
    if total > _MOST_TICKS or most < 1 or (most + 1) ** (2 * count) > _MOST_KEYS:
        return None
    rooms = [problem.room[one] for one in devices]
    steps = Steps(
        device=device.astype(np.int64),
        ticks=ticks,
        later=later,
        lag=starts - before,
        takes=np.concatenate((takes, -takes[::-1])),
        reach=_reach(device, starts, before, 1 + len(devices)),
        room=np.array([-1, *(-1 if room is None else room for room in rooms)], np.int64),
        waiting=np.array([0, *(_least_waiting(problem, stages, one) for one in devices)], np.int64),
        longest=np.array([0, *(later[device == 1 + one].max() for one in range(len(devices)))], np.int64),
        whole=np.bincount(device[:count], takes, 1 + len(devices)).astype(np.int64),
        forward=np.array([0, *(np.flatnonzero(device[:count] == 1 + n)[-1] for n in range(len(devices)))], np.int64),
        place=np.array([0, *((most + 1) ** n for n in range(2 * count - 1))], np.int64),
        microbatches=len(problem.microbatches_of[first]),
        in_flight=most,
        makespan=False,
    )
    after = paths.tail(first) if first != chain[0] else paths.rest[first] - paths.gradient[first]
    return KeptStages(steps, paths.head[first] + paths.gradient[first] + after)


def _times(paths: Paths, stages: Sequence[int]) -> tuple[Numbers, Numbers, Numbers]:
    """Of each step: when one micro-batch alone starts it, after its first; its ticks; what a backward takes later."""
    back = [*stages[::-1]]
    starts = [paths.head[s] for s in stages] + [paths.head[s] + paths.forward[s] + paths.round_trip[s] for s in back]
    ticks = [paths.forward[s] for s in stages] + [paths.gradient[s] for s in back]
    later = [0] * len(back) + [paths.rest[s] - paths.gradient[s] for s in back]
    return np.array(starts, np.int64) - starts[0], np.array(ticks, np.int64), np.array(later, np.int64)


def _least_waiting(problem: Problem, stages: Sequence[int], device: int) -> int:
    """The least memory that a weight pass of some stages holds on a device until it has run."""
    own = [problem.stages[stage] for stage in stages if problem.placement.stage_device[stage] == device]
    return max(0, min(one.activation - (one.freed if problem.splittable else 0) for one in own))


def _reach(device: Numbers, starts: Numbers, before: Numbers, devices: int) -> Numbers:
    """From the end of the step before each to the next one of each device, itself among them; -1 where none is left."""
    found = np.full((len(device), devices), -1, np.int64)
    for one in range(devices):
        own = np.flatnonzero(device == one)
        number = np.searchsorted(own, np.arange(len(device)))
        some = number < len(own)
        found[some, one] = starts[own[number[some]]] - before[some]
    return found
