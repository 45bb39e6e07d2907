"""Argument: under multipliers of one device's time and memory, its micro-batches cost more than all of it is worth.

A schedule in which at most one pass runs at each instant, and memory holds no more than its capacity, costs at most the
sum of all multipliers. If even the cheapest way of every micro-batch by itself costs more within some time, there is no
schedule of that time. The multipliers may be any numbers of at least 0: the argument holds for all.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.checking.attainable import least_attainable_above
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.head_and_tail import gates_of, way_back
from pipesched.checking.one_device import OneDevice
from pipesched.problem.problem import Problem
from pipesched.results.evidence import DeviceMultipliers

# Costs are integers of 64 bits: sums of so much each, and what is above all of them.
_MOST, _NEVER = 2**59, 2**61
# Behind all instants.
_ANY_TIME = 2**60

Whole = NDArray[np.int64]


class _Step(NamedTuple):
    """A pass of a micro-batch, which starts in a window and takes memory at its start or gives it back at its end.

    `after` are the numbers of steps that start so long after the start of this one at the earliest.
    """

    earliest: int
    latest: int | None
    ticks: int
    takes: int
    gives: int
    after: tuple[tuple[int, int], ...]


def lagrangian(problem: Problem, evidence: DeviceMultipliers) -> Fraction:
    """The least value of a schedule that takes longer than the time into which the micro-batches do not fit."""
    here = OneDevice(problem, evidence.device)
    if here.blocks:
        raise NotCoveredError("multipliers of a device with overlapped blocks")
    finer = evidence.tick / problem.tick
    if finer.denominator != 1:
        raise RefusedEvidenceError("the evidence counts in ticks that the problem's times are no multiples of")
    until, units = evidence.until * int(finer), _Units(problem, evidence)
    room = None if here.room is None else units.of(here.room)
    multipliers = _Multipliers(evidence, int(finer), room)
    cost = 0
    for stages, gate in zip(here.chains, gates_of(problem, evidence.owner, here), strict=True):
        steps = _steps(here, stages, gate, until, evidence.owner in (None, here.device), units)
        cost += here.count[gate] * multipliers.cheapest(steps)
    if cost <= multipliers.worth:
        raise RefusedEvidenceError(
            f"the micro-batches cost {cost} and device {here.device} is worth {multipliers.worth}"
        )
    return least_attainable_above(problem, until)


class _Units:
    """Memory in whole units, rounded down: what fits together still does."""

    def __init__(self, problem: Problem, evidence: DeviceMultipliers) -> None:
        self._size = evidence.memory_unit / problem.resolution

    def of(self, memory: int) -> int:
        return floor(memory / self._size)


def _steps(
    here: OneDevice, stages: list[int], gate: int, until: int, all_by_the_end: bool, units: _Units
) -> list[_Step]:
    """What a micro-batch does on the device, the last first: gradients with their weight passes, then forwards.

    All in ticks after the start of the owner at the gate, or after time 0. Weight passes end by the end if that is the
    device's own, or that of all.
    """
    times, first, turn = here.times, here.times[gate].begins, stages[-1]
    whole_way = until - way_back(here, turn, gate) - times[turn].returned
    steps: list[_Step] = []
    later: tuple[tuple[int, int], ...] = ()  # the step that comes next on the way, and when it does

    def lags(start: int) -> tuple[tuple[int, int], ...]:
        return tuple((number, then - start) for number, then in later)

    for s in stages:
        start, weight, gives = times[s].turns - first, times[s].backward - times[s].gradient, 0
        after = lags(start)
        if here.problem.stages[s].weight is not None:
            gives = units.of(here.problem.stages[s].activation - max(0, here.problem.stages[s].freed))
            ended = start + times[s].gradient
            after = (*after, (len(steps), times[s].gradient))
            steps.append(_Step(ended, until - weight if all_by_the_end else None, weight, 0, gives, ()))
        given = units.of(here.problem.stages[s].activation) - gives
        latest = until - way_back(here, s, gate) - times[s].gradient
        steps.append(_Step(start, latest, times[s].gradient, 0, given, after))
        later = ((len(steps) - 1, start),)
    for s in reversed(stages):
        start = times[s].begins - first
        takes = units.of(here.problem.stages[s].activation)
        steps.append(_Step(start, whole_way + times[s].begins, times[s].forward, takes, 0, lags(start)))
        later = ((len(steps) - 1, start),)
    return steps


class _Multipliers:
    """The multipliers at their instants, and what passes cost under them."""

    def __init__(self, evidence: DeviceMultipliers, finer: int, room: int | None) -> None:
        lists: tuple[tuple[int, ...], ...] = evidence.instants, evidence.running, evidence.holding
        instants = [instant * finer for instant in lists[0]]
        if len({len(each) for each in lists}) != 1 or not instants:
            raise RefusedEvidenceError("not as many multipliers as instants")
        if min(map(min, lists)) < 0 or any(one >= other for one, other in pairwise(instants)):
            raise RefusedEvidenceError("a multiplier below 0, or instants that do not ascend from 0")
        self.worth = sum(lists[1]) + (room or 0) * sum(lists[2])
        if room is None and any(lists[2]):
            raise RefusedEvidenceError("multipliers of memory that has no limit")
        if self.worth >= _MOST or instants[-1] >= _MOST or evidence.until * finer >= _MOST:
            raise RefusedEvidenceError("numbers too large to add up")
        self._worth_of_memory = sum(lists[2])
        self._instants: Whole = np.array(instants)
        self._running, self._holding = (np.concatenate([[0], np.cumsum(each)]) for each in lists[1:])

    def cheapest(self, steps: list[_Step]) -> int:
        """The least cost of all steps, the last of which is the first to start.

        What a step costs, and what those after it do, changes only where its start or its end passes an instant: so
        each starts as late as costs the same, at an instant, or so that its end or a step after it is at one.
        """
        starts: list[Whole] = []
        least: list[Whole] = []  # of a step and those after it, from each of its starts on
        for step in steps:
            ends = self._instants - step.ticks
            others = [starts[number] - lag for number, lag in step.after]
            latest = _ANY_TIME if step.latest is None else step.latest
            at = np.unique(np.concatenate([self._instants, ends, [latest], *others]))
            at = at[(at >= step.earliest) & (at <= latest)]
            costs = self._costs(step, at)
            for number, lag in step.after:
                costs = costs + _from(starts[number], least[number], at + lag)
            starts.append(at)
            least.append(np.minimum(np.minimum.accumulate(costs[::-1])[::-1], _NEVER))
        return int(least[-1][0]) if len(least[-1]) else _NEVER

    def _costs(self, step: _Step, at: Whole) -> Whole:
        """The pass runs from its start until just before its end; memory counts until its end less until its start."""
        if max(step.takes, step.gives) * max(1, self._worth_of_memory) >= _MOST:
            raise RefusedEvidenceError("numbers too large to add up")
        begin, end = (np.searchsorted(self._instants, times, "left") for times in (at, at + step.ticks))
        costs: Whole = self._running[end] - self._running[begin]
        costs += step.gives * self._holding[end] - step.takes * self._holding[begin]
        return costs


def _from(starts: Whole, least: Whole, at: Whole) -> Whole:
    """The least cost if a step starts at these times or later."""
    found: Whole = np.append(least, _NEVER)[np.searchsorted(starts, at, "left")]
    return found
