"""The exact optimum of tiny problems by trying the orders of all devices together; the span to the fraction of a tick.

Written from the rules of a schedule in docs/concepts.md; knows neither simulator nor solver nor the tests' slower
search. No order is left out: not micro-batch order on a stage, nor fused or split backwards, blocks, or weight passes
run at any time. Micro-batches of a chain that are alike are numbered as they start on the chain's first stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from benchmarks.proofs.exhaustive.search import search
from pipesched.problem.problem import Objective, Problem

# Values are counted in this part of a tick: the span of an order is a sum over up to three devices, by their number.
PARTS = 6
# Micro-batches counted on each stage, and slots that are tried, beyond which a problem is not tiny.
_MOST_PAIRS, _MOST_STEPS = 20, 50_000
_ROOM = 2**40
_NONE = -1


class NotTiny(Exception):
    """There are too many orders to try them all."""


class Answer(NamedTuple):
    """Two answers: a schedule is below the value; one has just this value (not asked where one is below)."""

    beaten: bool
    attained: bool


def least_value(problem: Problem, objective: Objective, at_most: int) -> Fraction | None:
    """The least value in ticks that any schedule has, if it is at most so much; None if it is more.

    `NotTiny` where that would take too long to find out, and of what is not known here: arcs between chains,
    collectives, blocks of unequal micro-batches.
    """
    found = _least(problem, objective, at_most * PARTS, -1, _MOST_STEPS)
    return None if found is None else Fraction(found, PARTS)


def compared(problem: Problem, objective: Objective, value: Fraction, most_steps: int = _MOST_STEPS) -> Answer:
    """The optimum as compared with a value in ticks; many times as fast where these are near each other."""
    limit, less = floor(value * PARTS), ceil(value * PARTS) - 1
    found = _least(problem, objective, limit, less, most_steps)
    return Answer(beaten=found is not None and found <= less, attained=found is not None and found > less)


def _least(problem: Problem, objective: Objective, limit: int, enough: int, most_steps: int) -> int | None:
    if problem.devices > 3 or problem.chain_arcs.arcs or problem.network.has_collectives:
        raise NotTiny
    if problem.overlaps and problem.walks.scale:
        raise NotTiny
    passes = np.array([*_passes(problem)], np.int64).T.copy()
    if passes.shape[1] > _MOST_PAIRS:
        raise NotTiny
    room = np.array([_ROOM if own is None else own for own in problem.room], np.int64)
    found = search(passes, room, objective is Objective.SPAN, limit, enough, most_steps)
    if found < -1:
        raise NotTiny
    return None if found < 0 else int(found)


def _passes(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Time, predecessors and memory of the passes of each stage and micro-batch."""
    where, stages, in_order = problem.placement, problem.stages, bool(problem.walks.queues)
    walks = [(walk, j) for walk in where.chains for j in problem.microbatches_of[walk[0]]]
    numbers = {pair: n for n, pair in enumerate((s, j) for walk, j in walks for s in walk)}

    def scaled(number: int | None, j: int) -> int:
        factor = problem.walks.scale[j] if problem.walks.scale else 1
        return _NONE if number is None else int(number * factor)

    def alike(s: int, j: int) -> int:
        """The last micro-batch before that is as long."""
        every = (i for i in problem.microbatches_of[s] if i < j and scaled(60, i) == scaled(60, j))
        return numbers.get((s, max(every, default=_NONE)), _NONE)

    for walk, j in walks:
        for place, s in enumerate(walk):
            stage, before = stages[s], walk[place - 1] if place else None
            after = walk[place + 1] if place + 1 < len(walk) else None
            best_split = stage.weight is not None and not problem.overlaps and stage.freed >= 0
            fuse = not (best_split and stage.backward + (stage.weight or 0) <= stage.fused)
            last = numbers.get((s, max((i for i in problem.microbatches_of[s] if i < j), default=_NONE)), _NONE)
            yield (
                where.stage_device[s],
                scaled(stage.forward, j),
                scaled(stage.backward if stage.weight is not None else None, j),
                scaled(stage.weight, j),
                scaled(stage.fused if fuse else None, j),
                scaled(stage.overlapped, j),
                scaled(stage.activation, j),
                scaled(stage.freed, j),
                _NONE if before is None else numbers[before, j],
                _NONE if after is None else numbers[after, j],
                0 if before is None else scaled(_lag(problem, before, before, s), j),
                0 if after is None else scaled(_lag(problem, s, after, s), j),
                last if in_order else alike(s, j) if place == 0 else _NONE,
                last if in_order else _NONE,
                scaled(stage.block_saves, j),
            )


def _lag(problem: Problem, first: int, sender: int, receiver: int) -> int:
    """Ticks that a tensor takes between two stages, of which `first` is walked first; nothing inside a device."""
    here, there = (problem.placement.stage_device[s] for s in (sender, receiver))
    if here == there:
        return 0
    return problem.stages[first].transfer + (problem.links[here][there] if problem.links else 0)
