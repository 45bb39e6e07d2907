"""Sets of stages: their chains and devices, and an estimate of the number of states of their steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

from pipesched.problem.problem import Objective, Problem


def walked_chains(problem: Problem) -> Iterator[tuple[int, ...]]:
    """The chains that micro-batches walk."""
    for chain, walk in zip(problem.placement.chains, problem.walking, strict=True):
        if len(walk):
            yield chain


def by_chain(problem: Problem, stages: Sequence[int]) -> list[tuple[int, ...]]:
    """The stages of each chain in chain order; chains without any are left out."""
    chains = (tuple(stage for stage in chain if stage in stages) for chain in walked_chains(problem))
    return [own for own in chains if own]


def devices_of(problem: Problem, stages: Sequence[int]) -> tuple[int, ...]:
    """Their devices, in the order of the stages."""
    return tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in stages))


def stages_on(problem: Problem, chain: Sequence[int], devices: Sequence[int | None]) -> tuple[int, ...]:
    """The stages of a chain on some devices."""
    return tuple(stage for stage in chain if problem.placement.stage_device[stage] in devices)


def owner_of(problem: Problem, chain: Sequence[int], stages: Sequence[int]) -> int | None:
    """The device whose span stages of one chain bound best: the first device, if its first stage is modelled."""
    span = problem.objective is not Objective.MAKESPAN
    return problem.placement.stage_device[chain[0]] if span and chain[0] in stages else None


def in_flight(problem: Problem, stage: int) -> int:
    """Number of micro-batches that memory admits to a stage between forward and gradient."""
    room, taken = problem.room[problem.placement.stage_device[stage]], problem.stages[stage].activation
    count = len(problem.microbatches_of[stage])
    return count if room is None or taken <= 0 else min(count, room // taken)


def state_count(problem: Problem, stages: Sequence[int]) -> int:
    """About how many states a layer has, at most."""
    return ways_to_place(in_flight(problem, stages[0]), 2 * len(stages))


def ways_to_place(microbatches: int, steps: int) -> int:
    """Estimate of the number of placements of micro-batches on the steps in order, with `steps` done."""
    return comb(steps + microbatches, steps) // steps
