"""What a problem is relaxed to: some stages of one chain, each on a device of its own, and delays between them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.critical_paths import Paths

Numbers = NDArray[np.int64]

# The sum of all ticks of a line must stay far below what 64 bits hold.
_MOST_TICKS = 2**50


class Line(NamedTuple):
    """The stages, and by their place in the line what a micro-batch takes there.

    The rows of `ticks`: forwards, gradients, what a backward takes after its gradient, and the ways from a stage to the
    next and from that back. `turn` is the way from the last forward to the gradient that comes back. `admitted` is how
    many micro-batches can be in memory from forward to gradient. `pending[n, r]` is how many weight passes may still
    be open when a forward starts beside r others that wait for their gradients; -1 where memory does not say.
    """

    stages: tuple[int, ...]
    ticks: Numbers
    turn: int
    admitted: tuple[int, ...]
    pending: Numbers
    microbatches: int
    makespan: bool


def candidates(problem: Problem, chain: Sequence[int]) -> list[int]:
    """The first stages of a chain, until it comes to a device again."""
    found: list[int] = []
    for stage in chain:
        if problem.placement.stage_device[stage] in {problem.placement.stage_device[one] for one in found}:
            break
        found.append(stage)
    return found


def line_of(problem: Problem, paths: Paths, stages: Sequence[int]) -> Line | None:
    """The line of these stages, which begin with the first of their chain; None where its memory never is short."""
    count = len(problem.microbatches_of[stages[0]])
    admitted: list[int] = []
    for stage in stages:
        room, size = problem.room[problem.placement.stage_device[stage]], problem.network.held_in_flight[stage]
        # No device has more micro-batches between forward and gradient than the one before.
        most = admitted[-1] if admitted else count
        admitted.append(most if room is None or size <= 0 else min(most, room // size))
    if admitted[-1] < 1 or admitted[0] >= count:
        return None
    forward, gradient = ([of[s] for s in stages] for of in (paths.forward, paths.gradient))
    weight = [paths.rest[s] - paths.gradient[s] for s in stages]
    pairs = list(pairwise(stages))
    down = [paths.head[b] - paths.head[a] - paths.forward[a] for a, b in pairs] + [0]
    up = [paths.back[b] - paths.back[a] - paths.gradient[a] for a, b in pairs] + [0]
    turn = paths.round_trip[stages[-1]]
    if count * (sum(forward) + sum(gradient) + sum(weight) + sum(down) + sum(up) + turn) > _MOST_TICKS:
        return None
    pending = [[_pending(problem, stage, r) for r in range(admitted[0])] for stage in stages]
    return Line(
        stages=tuple(stages),
        ticks=np.array([forward, gradient, weight, down, up], np.int64),
        turn=turn,
        admitted=tuple(admitted),
        pending=np.array(pending, np.int64),
        microbatches=count,
        makespan=problem.objective is Objective.MAKESPAN,
    )


def _pending(problem: Problem, stage: int, others: int) -> int:
    """How many weight passes may be open when a forward starts beside so many that wait for their gradients."""
    room, size = problem.room[problem.placement.stage_device[stage]], problem.network.held_in_flight[stage]
    rest = size - problem.network.freed_by_backward[stage] if problem.splittable else size
    left = None if room is None else room - (others + 1) * size
    return -1 if left is None or left < 0 or size <= 0 or rest <= 0 else left // rest
