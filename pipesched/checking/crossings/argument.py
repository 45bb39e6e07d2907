"""Argument: the micro-batches of a chain, of which memory admits few, pass each other in some order.

Micro-batches of a chain are alike. If their names are exchanged on each stage by the order in which they run there,
what they wait for is still before them. So the forwards of a stage run in turn, and its gradients too, and an order
says how many forwards there are before each gradient: no fewer than on the next stage, no more than memory admits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipesched.checking.devices.least_times import LeastTimes, least_times
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.problem.problem import Objective, Problem
from pipesched.results.crossing_evidence import Crossings

# Beyond these the check would take minutes.
_MOST_STATES, _MOST_STEPS, _MOST_WIDTH, _MOST_TICKS = 5_000, 200_000, 256, 2**50

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def crossings(problem: Problem, evidence: Crossings) -> int:
    """The least end over all orders; where many have come equally far, near ones count as one that is no later."""
    from pipesched.checking.crossings.rounds import orders_tried

    count = _microbatches(problem, evidence)
    times = least_times(problem)
    room = _rooms(problem, evidence.stages, count)
    if room[-1] < 1 or not 0 < evidence.width <= _MOST_WIDTH:
        raise RefusedEvidenceError("nothing is admitted")
    ahead = _ahead(room)
    after = [[other for other, row in enumerate(ahead) if _follows(row, one)] for one in ahead]
    if sum(map(len, after)) > _MOST_STEPS:
        raise NotCoveredError("too many orders to try them all")
    own = [times[s] for s in evidence.stages]
    durations = np.array([_durations(one, other) for one, other in zip(own, [*own[1:], None], strict=True)], np.int64)
    if count * int(durations.sum()) > _MOST_TICKS:
        raise NotCoveredError("times of too many digits")
    open_ = np.array([[_open(problem, s, r) for r in range(room[0])] for s in evidence.stages], np.int64)
    at = np.cumsum([0, *map(len, after)])
    flat = np.array([other for each in after for other in each], np.int64)
    ends = orders_tried(np.array(ahead, np.int64), at, flat, durations, open_, count, evidence.width)
    counted = len(own) if problem.objective is Objective.MAKESPAN else 1
    return int(ends[:, :counted].max(axis=1).min())


def _microbatches(problem: Problem, evidence: Crossings) -> int:
    """How many walk the stages: the first of a chain and others in its order, each on a device of its own."""
    where, stages = problem.placement.stage_device, evidence.stages
    chain = next((c for c in problem.placement.chains if stages and c[0] == stages[0]), ())
    places = [chain.index(s) for s in stages if s in chain]
    if len(places) < max(1, len(stages)) or places != sorted(set(places)):
        raise RefusedEvidenceError(f"stages {list(stages)} are not those of a chain from its first")
    if len({where[s] for s in stages}) < len(stages):
        raise RefusedEvidenceError("two stages are on one device")
    if any(stage.overlapped is not None for stage in problem.stages):
        raise NotCoveredError("in a block a forward and a backward need not pass each other")
    if not len(problem.microbatches_of[stages[0]]):
        raise RefusedEvidenceError("no micro-batch walks the stages")
    return len(problem.microbatches_of[stages[0]])


def _free(problem: Problem, stage: int) -> int | None:
    """The memory of the stage's device for activations; None without a limit."""
    where = problem.placement.stage_device
    pool = problem.pools[where[stage]]
    static = sum(one.static for one, device in zip(problem.stages, where, strict=True) if device == where[stage])
    return None if pool.capacity is None else pool.capacity - pool.static - static


def _rooms(problem: Problem, stages: tuple[int, ...], count: int) -> list[int]:
    """How many micro-batches are between forward and gradient at most; no more than on the stage before."""
    found = [count]
    for stage in stages:
        free, activation = _free(problem, stage), problem.stages[stage].activation
        found.append(found[-1] if free is None or activation <= 0 else min(found[-1], free // activation))
    return found[1:]


def _open(problem: Problem, stage: int, behind: int) -> int:
    """How many weight passes need not have run when the forward starts of a micro-batch so far behind; -1 for any."""
    own, free = problem.stages[stage], _free(problem, stage)
    rest = own.activation - (0 if own.weight is None else own.freed)
    if free is None or own.activation <= 0 or rest <= 0 or free < (behind + 1) * own.activation:
        return -1
    return (free - (behind + 1) * own.activation) // rest


def _ahead(room: list[int]) -> list[tuple[int, ...]]:
    """How many forwards may have run on each stage of those whose gradient has not, in lexicographic order."""
    found: list[tuple[int, ...]] = [()]
    for most in room:
        found = [(*one, n) for one in found for n in range(most) if not one or n <= one[-1]]
        if len(found) > _MOST_STATES:
            raise NotCoveredError("too many orders to try them all")
    return found


def _follows(row: tuple[int, ...], one: tuple[int, ...]) -> bool:
    """Whether a gradient on each stage leads from one to the other; no forward that has run runs again."""
    return all(n + 1 >= before for n, before in zip(row, one, strict=True))


def _durations(one: LeastTimes, other: LeastTimes | None) -> list[int]:
    """Of forward, gradient and what is left of the backward; the ways to the next stage and back, or to its turn."""
    own = [one.forward, one.gradient, one.backward - one.gradient]
    if other is None:
        return [*own, one.turns - one.begins - one.forward, 0]
    return [*own, other.begins - one.begins - one.forward, one.turns - other.returned]
