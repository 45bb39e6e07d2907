"""Argument: the forwards and gradients of a chain's micro-batches run in some order on the devices that are looked at.

Micro-batches of a chain are alike. If their names are exchanged on each stage by the order in which they run there,
what they wait for is still before them, and each device runs the same at the same times. So the forwards of a stage run
in turn, and its gradients too. A forward needs memory that gradients before it on its device have given back, and time
for all weight passes but those whose memory it can do without. Other devices take the least time that they can.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.least_times import least_times
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import Stage
from pipesched.results.crossing_evidence import CrossingSteps

# Beyond these the check would take minutes, or numbers more than 64 bits.
_MOST_WIDTH, _MOST_TICKS, _MOST_STATES = 1024, 2**50, 2**62

Numbers = np.ndarray[Any, np.dtype[np.int64]]


class Way(NamedTuple):
    """What a micro-batch does on the devices, in turn: forwards, then gradients. Arrays by step, or by device.

    `before` is the time from the end of the step before to the start of a step, `after` what a backward takes when its
    gradient has run. `soonest[n, d]` is the least time from the end of the step before n to the start of one on device
    d, from n on; -1 where there is none. `room` is -1 without a limit. `open_` is the least memory of a weight pass
    that has not run, `weight` the longest.
    """

    device: Numbers
    ticks: Numbers
    after: Numbers
    before: Numbers
    memory: Numbers
    soonest: Numbers
    room: Numbers
    open_: Numbers
    weight: Numbers
    microbatches: int
    admitted: int


def crossings_of_steps(problem: Problem, evidence: CrossingSteps) -> int:
    """The least end over all orders; where many have come equally far, near ones count as one that is no later."""
    from pipesched.checking.crossing_steps.orders import least_end

    chain = chain_of(problem, evidence.stage, evidence.devices)
    if any(stage.overlapped is not None for stage in problem.stages):
        raise NotCoveredError("in a block a forward and a backward need not pass each other")
    way = way_on(problem, chain, evidence.devices, evidence.width)
    return least_end(way, evidence.width, problem.objective is Objective.MAKESPAN)


def way_on(problem: Problem, chain: tuple[int, ...], devices: tuple[int, ...], width: int) -> Way:
    """The way of a chain's micro-batches over these devices, of which so many orders are to be told apart."""
    where = problem.placement.stage_device
    return way_along(problem, tuple(stage for stage in chain if where[stage] in devices), devices, width)


def way_along(problem: Problem, down: tuple[int, ...], devices: tuple[int, ...], width: int) -> Way:
    """The same over some stages of a chain, in its order, and their devices."""
    if not 0 < width <= _MOST_WIDTH:
        raise RefusedEvidenceError(f"{width} orders are told apart")
    way = _way(problem, down, devices)
    if way.admitted < 1:
        raise RefusedEvidenceError("nothing is admitted")
    total = way.microbatches * int(way.ticks.sum() + way.after.sum() + way.before.sum())
    if total > _MOST_TICKS or (way.admitted + 1) ** (len(way.ticks) - 1) > _MOST_STATES:
        raise NotCoveredError("numbers of too many digits")
    return way


def chain_of(problem: Problem, first: int, devices: tuple[int, ...]) -> tuple[int, ...]:
    """The chain that begins with a stage and comes to these devices, which some micro-batches walk."""
    where = problem.placement.stage_device
    chain = next((chain for chain in problem.placement.chains if chain[0] == first), None)
    if chain is None:
        raise RefusedEvidenceError(f"no chain begins with stage {first}")
    if not devices or devices[0] != where[first] or len(set(devices)) < len(devices):
        raise RefusedEvidenceError(f"devices {list(devices)} are not the chain's first and others")
    if not {where[stage] for stage in chain}.issuperset(devices):
        raise RefusedEvidenceError(f"the chain does not come to all of devices {list(devices)}")
    if not len(problem.microbatches_of[first]):
        raise RefusedEvidenceError("no micro-batch walks the chain")
    return chain


def _way(problem: Problem, down: tuple[int, ...], devices: tuple[int, ...]) -> Way:
    """The steps of a chain's stages on these devices; all others are time that passes."""
    where, times = problem.placement.stage_device, least_times(problem)
    device = np.array([devices.index(where[stage]) for stage in (*down, *reversed(down))], np.int64)
    away = times[down[0]].begins
    starts = [times[s].begins - away for s in down] + [times[s].turns - away for s in reversed(down)]
    ticks = [times[s].forward for s in down] + [times[s].gradient for s in reversed(down)]
    ends = [0, *(start + own for start, own in zip(starts, ticks, strict=True))]
    of = [[s for s in down if where[s] == one] for one in devices]
    after = {s: times[s].backward - times[s].gradient for s in down}
    memory = [problem.stages[s].activation for s in down]
    return Way(
        device=device,
        ticks=np.array(ticks, np.int64),
        after=np.array([0] * len(down) + [after[s] for s in reversed(down)], np.int64),
        before=np.array([start - end for start, end in zip(starts, ends, strict=False)], np.int64),
        memory=np.array(memory + [-held for held in reversed(memory)], np.int64),
        soonest=_soonest(device, starts, ends, len(devices)),
        room=np.array([_free(problem, one) for one in devices], np.int64),
        open_=np.array([min(map(_open, (problem.stages[s] for s in own))) for own in of], np.int64),
        weight=np.array([max(after[s] for s in own) for own in of], np.int64),
        microbatches=len(problem.microbatches_of[down[0]]),
        admitted=_admitted(problem, down[0]),
    )


def _soonest(device: Numbers, starts: list[int], ends: list[int], devices: int) -> Numbers:
    """From the end of each step before to the first one on each device from there on; -1 where there is none."""
    found = np.full((len(device), devices), -1, np.int64)
    for step, end in enumerate(ends[:-1]):
        for one in range(devices):
            next_ones = [start for start, own in zip(starts[step:], device[step:], strict=True) if own == one]
            if next_ones:
                found[step, one] = next_ones[0] - end
    return found


def _free(problem: Problem, device: int) -> int:
    """The memory of a device for activations; -1 without a limit."""
    pool, where = problem.pools[device], problem.placement.stage_device
    static = sum(one.static for one, own in zip(problem.stages, where, strict=True) if own == device)
    return -1 if pool.capacity is None else pool.capacity - pool.static - static


def _open(stage: Stage) -> int:
    """What a weight pass that has not run holds."""
    return stage.activation - (0 if stage.weight is None else stage.freed)


def _admitted(problem: Problem, first: int) -> int:
    """How many micro-batches are at once between their first forward and their last gradient, at most."""
    count, activation = len(problem.microbatches_of[first]), problem.stages[first].activation
    free = _free(problem, problem.placement.stage_device[first])
    return count if free < 0 or activation <= 0 else min(count, free // activation)
