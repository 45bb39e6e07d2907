"""Conversion of a problem's modelled stages to the steps of a decision diagram."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from pipesched.errors import OutOfRange
from pipesched.int64_arrays import int64_array, int64_sum
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemoryArray, StageId, TickArray, Ticks
from solver.bounds.analytic.critical_paths import Paths, durations
from solver.diagram.modelled_stages import by_chain, devices_of, in_flight
from solver.diagram.shared_digits import shared_digits
from solver.diagram.steps import NEVER, NONE, NOTHING, ModelledSteps, Numbers, Step, Steps, ticks_of_all

# Sums of times over many labels must fit into 64 bits, and so must the keys of states.
_MOST_TICKS, LARGEST_KEY = 2**50, 2**62


def modelled_steps(
    problem: Problem, paths: Paths, stages: Sequence[StageId], device: DeviceId | None = None
) -> ModelledSteps | None:
    """Return the steps of a diagram in which `stages` are modelled, chain by chain in chain order; others are delays.

    None if numbers are too large or nothing fits the memory. For a span the time of `device` counts, from its first
    start; with `device` None, the time from the first forward of the only chain, for the makespan from time 0.
    """
    try:
        return _kept_steps(problem, paths, stages, device)
    except OutOfRange:
        return None


def _kept_steps(
    problem: Problem, paths: Paths, stages: Sequence[StageId], device: DeviceId | None
) -> ModelledSteps | None:
    chains = by_chain(problem, stages)
    every = [step for own in chains for step in _steps_of(own)]
    devices, where = devices_of(problem, stages), problem.placement.stage_device
    device_of = int64_array([devices.index(where[one.stage]) for one in every])
    lengths = [2 * len(own) for own in chains]
    firsts = np.repeat(np.append(0, np.cumsum(lengths)[:-1]), lengths)
    lasts = np.repeat(np.cumsum(lengths) - 1, lengths)
    starts, ends = _starts_and_ends(paths, every)
    since = starts[firsts] if device is not None else np.zeros_like(starts)
    before = np.where(np.arange(len(every)) == firsts, since, np.roll(ends, 1))
    ticks, later = _outside_of_blocks(problem, every, stages)
    blocks = _blocks(problem, every)
    microbatches = int64_array([len(problem.microbatches_of[one.stage]) for one in every])
    most = np.repeat([in_flight(problem, own[0]) for own in chains], lengths).astype(np.int64)
    takes = int64_array([problem.stages[one.stage].activation * (1 if one.forward else -1) for one in every])
    int64_sum([takes_each * number for takes_each, number in zip(takes.tolist(), microbatches.tolist(), strict=True)])
    longest = ticks_of_all(ticks, later, starts - before, blocks, microbatches)
    base, raises, decoded = _digits(firsts, lasts, microbatches, most)
    if longest > _MOST_TICKS or most.min() < 1 or raises is None:
        return None
    rooms = [problem.room[one] for one in devices]
    makespan = problem.objective.from_zero
    stages_of_device = [[one.stage for one in every if one.forward and where[one.stage] == own] for own in devices]
    slot = np.append(0, np.cumsum([in_flight(problem, own[0]) for own in chains]))
    steps = Steps(
        device=device_of,
        ticks=ticks,
        later=later,
        lag=starts - before,
        takes=takes,
        first=firsts,
        last=lasts,
        **_of_a_chain_there(every, device_of, firsts, takes),
        microbatches=microbatches,
        in_flight=most,
        slot=np.repeat(slot[:-1], lengths),
        tail=int64_array([_tail(paths, one, device) for one in every]),
        holder=np.arange(len(every)),
        reach=_reach(device_of, starts, before, lasts, len(devices)),
        blocks=blocks,
        base=base,
        raises=raises,
        decoded=decoded,
        room=int64_array([NONE if room is None else room for room in rooms]),
        waiting=int64_array(
            [max(0, min(problem.network.memory_until_last[stage] for stage in own)) for own in stages_of_device]
        ),
        longest=int64_array([later[device_of == one].max() for one in range(len(devices))]),
        counts=int64_array([makespan or one == device for one in devices]),
        slots=int(slot[-1]),
        owner=NONE if device is None else devices.index(device),
        past=0 if device is None else -2 * longest,
        early=False,
    )
    return ModelledSteps(tuple(stages), device, tuple(every), steps, ends)


def longest_of_all(problem: Problem) -> Ticks:
    """Return an upper bound on the ticks of any time in a diagram of this problem, whatever stages are modelled.

    Raises `OutOfRange` if a duration is too large for compiled code, and `ValueError` for unequal micro-batches.
    """
    paths, found = Paths(problem), 0
    for chain in by_chain(problem, range(problem.placement.stages)):
        every = [*_steps_of(chain)]
        once = paths.forward[chain[0]] + paths.round_trip[chain[0]] + paths.gradient[chain[0]]
        alone = sum(int(times.sum()) for times in _outside_of_blocks(problem, every, chain))
        blocks = int(_blocks(problem, every).max(axis=1).clip(min=0).sum()) if problem.network.blocks else 0
        found += len(problem.microbatches_of[chain[0]]) * (once + alone + blocks)
    return found


def _steps_of(stages: Sequence[StageId]) -> list[Step]:
    """Return a micro-batch's steps on the modelled stages of a chain: forwards, then gradients in reverse."""
    return [*(Step(stage, True) for stage in stages), *(Step(stage, False) for stage in reversed(stages))]


def _starts_and_ends(paths: Paths, every: Sequence[Step]) -> tuple[TickArray, TickArray]:
    """Return arrays of the earliest start and end in ticks of each step in `every`, for a micro-batch that is alone.

    Time counts from its first forward on the chain.
    """
    back = [0 if one.forward else paths.forward[one.stage] + paths.round_trip[one.stage] for one in every]
    starts = int64_array([paths.head[one.stage] for one in every]) + back
    least = [(paths.forward if one.forward else paths.gradient)[one.stage] for one in every]
    return starts, starts + int64_array(least)


def _outside_of_blocks(
    problem: Problem, every: Sequence[Step], stages: Sequence[StageId]
) -> tuple[TickArray, TickArray]:
    """Return the least ticks of each step in `every`, and of the part of a backward after its gradient pass.

    `stages` are the modelled ones. Raises `OutOfRange` if a number is too large for compiled code. That part can wait,
    and is 0 for forwards. Passes that may overlap with one of a stage that is not modelled count as short as in that
    block.
    """
    placement, kept = problem.placement, set(stages)
    others = [set(placement.stages_of[placement.stage_device[one.stage]]) - kept for one in every]
    own = [durations(problem, one.stage, sorted(mates)) for one, mates in zip(every, others, strict=True)]
    ticks = [forward if one.forward else gradient for one, (forward, gradient, _) in zip(every, own, strict=True)]
    later = [0 if one.forward else whole - gradient for one, (_, gradient, whole) in zip(every, own, strict=True)]
    return int64_array(ticks), int64_array(later)


def _blocks(problem: Problem, every: Sequence[Step]) -> TickArray:
    """Return the ticks of the block of each forward step (row) and gradient step (column) of `every`.

    -1 where there is none.
    """
    where, found = problem.placement.stage_device, np.full((len(every), len(every)), NONE, np.int64)
    for n, one in enumerate(every):
        for g, other in enumerate(every):
            if one.forward and not other.forward and where[one.stage] == where[other.stage]:
                ticks = problem.overlapped_ticks(Pass(F, one.stage, 0), Pass(BW, other.stage, 0))
                found[n, g] = NONE if ticks is None else ticks
    return found


def _digits(
    first: Numbers, last: Numbers, microbatches: Numbers, most: Numbers
) -> tuple[Numbers, Numbers | None, Numbers]:
    """Return three arrays by step: the base of its digit in a state's key, what it adds to the key, shared digits.

    The second is None for keys too large. The digit of a step counts the micro-batches in flight that have done it. The
    digit of a chain's last step counts all micro-batches that have done it; in the first chain it is left out, as the
    number of steps done implies it. If a chain's key would be too large, one digit counts the micro-batches between
    several steps (`solver.diagram.shared_digits`), and the third array is not empty. Arguments are arrays by step: the
    `first` and `last` step of its chain, the chain's number of `microbatches`, and the `most` of them in flight.
    """
    number, single = np.arange(len(first)), np.empty((0, 1), np.int64)
    base = [1 if n == last[0] else int((microbatches if n == last[n] else most)[n]) + 1 for n in number]
    place = [1, *accumulate(base, lambda one, other: one * other)]
    if place[-1] > LARGEST_KEY:
        shared = shared_digits(int(most[0]), len(first) - 1, LARGEST_KEY) if (first == 0).all() else None
        return (int64_array(base), None, single) if shared is None else shared
    raises = int64_array(place[:-1], LARGEST_KEY)
    for end in set(last.tolist()):
        others = int(raises[(last == end) & (number < end)].sum())
        raises[end] = (0 if end == last[0] else raises[end]) - others
    return int64_array(base), raises, single


def _of_a_chain_there(every: Sequence[Step], device: Numbers, first: Numbers, takes: MemoryArray) -> dict[str, Numbers]:
    """Return two arrays by step, on its chain's forwards on its device: the last one's index, and their whole memory.

    The arrays are named `forward` and `whole`. `every` are the steps; arrays by step have the index of its `device`,
    the `first` step of its chain, and the memory that it `takes`.
    """
    forward, down = np.zeros(len(every), np.int64), np.array([one.forward for one in every])
    whole = np.zeros(len(every), np.int64)
    for n in range(len(every)):
        own = np.flatnonzero(down & (device == device[n]) & (first == first[n]))
        forward[n], whole[n] = own[-1], takes[own].sum()
    return {"forward": forward, "whole": whole}


def _tail(paths: Paths, step: Step, device: DeviceId | None) -> Ticks:
    """Return the least ticks from the end of a gradient pass to the end of its chain.

    `NOTHING` where a device's span counts.
    """
    return paths.tail(step.stage) if device is None else NOTHING


def _reach(device: Numbers, starts: TickArray, before: TickArray, last: Numbers, devices: int) -> TickArray:
    """Return by step and device the least ticks until a micro-batch that is about to run the step reaches the device.

    They count from the end of the step before to the start of the first step, this or a later one of the chain, that is
    on the device; half of `NEVER` if none is. `starts` are the earliest starts of steps, `before` the ends of the steps
    before them, `last` the last steps of their chains.
    """
    found = np.full((len(device), devices), NEVER // 2, np.int64)
    for n, end in enumerate(last):
        for one in range(devices):
            own = np.flatnonzero(device[n : end + 1] == one)
            if len(own):
                found[n, one] = starts[n + own[0]] - before[n]
    return found
