"""Whether a tiny problem has a schedule below a value, by trying the orders of all devices together.

Written from the rules of a schedule in docs/concepts.md, as benchmarks/proofs/exhaustive/ is, to which it is held
equal; many times as fast where the value is near the optimum. What may be left out is what is left out there.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from benchmarks.proofs.exhaustive.optimum import NotTiny
from benchmarks.proofs.joint.limits import Numbers
from benchmarks.proofs.joint.search import search
from pipesched.problem.problem import Objective, Problem

# Values are counted in this part of a tick: the span of an order is a sum over up to three devices, by their number.
PARTS = 6
# Micro-batches counted on each stage, and slots that are tried, beyond which a problem is not tiny.
_MOST_PAIRS, _MOST_STEPS = 20, 10_000
_ROOM = 2**40
_NONE = -1


class Answer(NamedTuple):
    """Whether a schedule is below the value, and whether one has just this value (not asked where one is below)."""

    below: bool
    attained: bool


def compared(problem: Problem, objective: Objective, value: Fraction, most_steps: int = _MOST_STEPS) -> Answer:
    """The optimum of a problem without factors on micro-batches, as compared with a value in ticks."""
    if problem.devices > 3 or problem.microbatch_scale or problem.queues:
        raise NotTiny
    passes = _passes(problem)
    if passes.shape[1] > _MOST_PAIRS:
        raise NotTiny
    span = objective is Objective.SPAN
    limit, below = floor(value * PARTS), ceil(value * PARTS) - 1
    room = np.array([_ROOM if own is None else own for own in problem.room], np.int64)
    found = search(passes, room, span, limit, below, most_steps)
    if found < 0:
        raise NotTiny
    return Answer(below=found == 2, attained=found == 1)


def least_below(problem: Problem, objective: Objective, value: Fraction) -> Fraction:
    """The optimum, where it is known to be below a value, found by halving."""
    parts = range(ceil(value * PARTS))
    return Fraction(
        bisect_left(parts, True, key=lambda n: compared(problem, objective, Fraction(n + 1, PARTS)).below), PARTS
    )


def _passes(problem: Problem) -> Numbers:
    """What the passes of each stage and micro-batch take, wait for, and hold."""
    where, stages = problem.placement, problem.stages
    numbers: dict[tuple[int, int], int] = {}
    for walk in where.chains:
        for j in problem.microbatches_of[walk[0]]:
            for s in walk:
                numbers[s, j] = len(numbers)
    rows = []
    for walk in where.chains:
        for j in problem.microbatches_of[walk[0]]:
            for place, s in enumerate(walk):
                own, before = stages[s], walk[place - 1] if place else None
                after = walk[place + 1] if place + 1 < len(walk) else None
                split = own.weight is not None
                best_split = own.weight is not None and not problem.overlaps and own.freed >= 0
                fuse = not (best_split and own.backward + (own.weight or 0) <= own.fused)
                alike = (s, j - 1) in numbers and place == 0
                rows.append(
                    (
                        where.stage_device[s],
                        own.forward,
                        own.backward if split else _NONE,
                        own.weight if split else _NONE,
                        own.fused if fuse else _NONE,
                        _NONE if own.overlapped is None else own.overlapped,
                        own.activation,
                        own.freed,
                        _NONE if before is None else numbers[before, j],
                        _NONE if after is None else numbers[after, j],
                        0 if before is None else _lag(problem, before, before, s),
                        0 if after is None else _lag(problem, s, after, s),
                        numbers[s, j - 1] if alike else _NONE,
                    )
                )
    return np.array(rows, np.int64).T.copy()


def _lag(problem: Problem, first: int, sender: int, receiver: int) -> int:
    """Ticks that a tensor takes between two stages, of which `first` is walked first; nothing inside a device."""
    here, there = (problem.placement.stage_device[s] for s in (sender, receiver))
    if here == there:
        return 0
    return problem.stages[first].transfer + (problem.links[here][there] if problem.links else 0)
