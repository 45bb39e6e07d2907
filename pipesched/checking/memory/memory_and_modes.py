"""Argument: fast modes of passes cost their devices time, and slow ones occupy memory for longer.

Suppose that there is a schedule of at most some time. Then each device runs only so many passes outside of overlapped
blocks and splits only so many backwards, or the argument of unpaired passes would forbid it. With the least times that
this leaves, the activations of one device hold so much memory over time, each from its forward to its backward. If the
device has less than that in the time, there is no such schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np

from pipesched.checking.attainable import greatest_attainable_below
from pipesched.checking.devices.one_device import OneDevice
from pipesched.checking.devices.unpaired import LARGEST, ModeNumbers, Table, values_by_numbers
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.deadline import SHORT, asking
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, MemoryTicks, StageId, Ticks
from pipesched.results.evidence import OnDevice


class _Weights(NamedTuple):
    """Least memory of the device in question that a micro-batch takes while a pass of some stage runs.

    `passing`, in its forward or gradient, is of the stage and those before it; `weight`, in its W, of it alone.
    """

    passing: MemorySteps
    weight: MemorySteps


def memory_and_modes(problem: Problem, evidence: OnDevice, bound: Fraction | Ticks) -> Fraction | Ticks:
    """Return `bound`, in ticks, if the memory of the evidence's device would not suffice for any lower value.

    Otherwise raise `RefusedEvidenceError`. Raises `NotCoveredError` if numbers are too large, or for blocks on some of
    a device's stages alone.
    """
    limited = OneDevice(problem, evidence.device)
    if any(
        limited.problem.stages[s].freed < 0 and limited.problem.stages[s].weight is not None for s in limited.stages
    ):
        raise RefusedEvidenceError(f"gradients take memory of device {limited.device}")
    until = greatest_attainable_below(problem, bound)
    weights, needed = _weights(limited)
    of_limited: tuple[ModeNumbers, Table] | None = None
    for device in range(problem.devices):
        if not any(limited.count[s] for s in problem.placement.stages_of[device]):
            continue
        here = limited if device == limited.device else OneDevice(problem, device, limited.times)
        numbers, values = values_by_numbers(here)
        _require_short(numbers, weights)
        splits = _most_splits(numbers, values, until)
        if not (splits >= 0).any():
            return bound  # no numbers of passes of this device keep to the time
        if here is limited:
            of_limited = numbers, splits
        else:
            needed += int(_delays(numbers, splits, weights)[splits >= 0].min())
    assert of_limited is not None
    numbers, splits = of_limited
    delays = _delays(numbers, splits, weights)
    for row in asking(np.flatnonzero(splits >= 0), SHORT):
        if _given(numbers, until, int(row), int(splits[row])) >= needed + int(delays[row]):
            raise RefusedEvidenceError(f"the memory of device {limited.device} may last for less than the bound")
    return bound


def _weights(limited: OneDevice) -> tuple[dict[StageId, _Weights], MemoryTicks]:
    """Return by stage the memory in use during its passes, and the memory times ticks during all transfers.

    The stages are those of any device. Both count only the memory of the device `limited`; the second is the sum over
    all micro-batches.
    """
    problem, lags = limited.problem, 0
    found: dict[int, _Weights] = {}
    for chain in problem.placement.chains:
        waiting = 0  # of the stages before this one on the chain, each until its own gradient is back
        for at, stage in enumerate(chain):
            own = problem.stages[stage]
            memory = own.activation if stage in limited.stages else 0
            later = own.activation - own.freed if memory and own.weight is not None else 0
            found[stage] = _Weights(waiting + memory, later)
            waiting += memory
            if at + 1 < len(chain):
                round_trip = problem.lag(stage, chain[at + 1]) + problem.lag(chain[at + 1], stage)
                lags += round_trip * waiting * limited.count[stage]
    return found, lags


def _require_short(numbers: ModeNumbers, weights: Mapping[StageId, _Weights]) -> None:
    """Raise `NotCoveredError` if sums of memory times ticks might exceed 64 bits."""
    ticks = sum(s.forward + s.fused + s.backward + (s.weight or 0) for s in numbers.stages.values())
    memory = sum(sum(weights[s]) + one.activation for s, one in numbers.stages.items())
    if max(ticks * numbers.total, numbers.total**2) * memory > LARGEST:
        raise NotCoveredError("products of memory and time that are too large")


def _most_splits(numbers: ModeNumbers, values: Table, until: Fraction) -> Table:
    """Return the most split backwards with a bound of at most `until` ticks, by number of passes outside of blocks.

    The number is -1 if there is none. `values` has the bounds in ticks by number of passes outside of blocks (rows) and
    of split backwards (columns).
    """
    keeps = (values <= floor(until)) & numbers.possible
    most: Table = np.where(keeps, numbers.split[None, :], -1).max(axis=1)
    return most


def _delays(numbers: ModeNumbers, splits: Table, weights: Mapping[StageId, _Weights]) -> Table:
    """Return the least memory times ticks while the device runs its passes, by number of passes outside of blocks.

    The memory is that of the limited device; `weights` has, by stage, how much of it waits during each of the stage's
    passes. `splits` are the most split backwards for each number.
    """
    here, stages = numbers.here, numbers.stages
    base = sum(weights[s].passing * (one.forward + one.fused) * here.count[s] for s, one in stages.items())
    paired = numbers.total - numbers.alone
    of_forward = {s: min(here.blocks_of_forward(s), default=0) for s in stages}
    of_backward = {s: min(here.blocks_of_backward(s), default=0) for s in stages}
    forward = {s: weights[s].passing * (of_forward[s] - one.forward) for s, one in stages.items()}
    backward = {s: weights[s].passing * (of_backward[s] - one.fused) for s, one in stages.items()}
    less = {
        s: min(0, weights[s].passing * (one.backward - one.fused) + weights[s].weight * one.weight)
        for s, one in stages.items()
        if one.weight is not None
    }
    delays: Table = base + numbers.sums(forward, most=False)[paired] + numbers.sums(backward, most=False)[paired]
    if not numbers.splits:
        return delays
    return delays + numbers.sums(less, most=False)[np.maximum(splits, 0)]


def _given(numbers: ModeNumbers, until: Fraction, row: int, split: int) -> Fraction:
    """Return the most memory times ticks that the device offers within `until` ticks.

    That is capacity times time, less its ramps. In blocks a forward begins while its backward's activation is still in
    memory, so that at most one more activation is in memory than forwards run outside of blocks (entry `row` of
    `alone`). Forwards fill the memory one by one, and backwards empty it one by one. `split` is the number of split
    backwards.
    """
    here, stages = numbers.here, numbers.stages
    start = here.first_start if here.problem.objective.from_zero else 0
    largest = numbers.sums({s: one.activation for s, one in stages.items()})
    capacity = int(largest[min(numbers.total, int(numbers.alone[row]) + 1)])
    capacity = capacity if here.room is None else min(capacity, here.room)
    blocks = [ticks for s in stages for ticks in here.blocks_of_forward(s)]
    fill = min([one.forward for one in stages.values()] + blocks)
    whole = min([one.fused for one in stages.values()] + blocks)
    last = [
        one.weight if one.activation > one.freed else one.backward for one in stages.values() if one.weight is not None
    ]
    late = min([whole, *(ticks for ticks in last if ticks is not None)])
    steps = int(np.searchsorted(largest, capacity)) - 1
    time = until - start
    if steps < 1:
        return capacity * time
    soon = min(steps, split)  # as many of the last backwards may be weight passes alone
    empty, sooner = (many * capacity - int(largest[: many + 1].sum()) for many in (steps, soon))
    ramps = steps * (fill + whole) - soon * (whole - late)
    unused = empty * (fill + whole) - sooner * (whole - late)
    return min(capacity * time, capacity * max(time, Fraction(ramps)) - unused)
