"""Sets of modelled stages: their chains and devices, and an estimate of the number of states of their steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId


def walked_chains(problem: Problem) -> Iterator[tuple[StageId, ...]]:
    """Yield the stages of each chain that has micro-batches, in chain order."""
    for chain, walk in zip(problem.placement.chains, problem.walking, strict=True):
        if len(walk):
            yield chain


def by_chain(problem: Problem, stages: Sequence[StageId]) -> list[tuple[StageId, ...]]:
    """Return the given stages of each chain in chain order; chains without any are left out."""
    chains = (tuple(stage for stage in chain if stage in stages) for chain in walked_chains(problem))
    return [own for own in chains if own]


def devices_of(problem: Problem, stages: Sequence[StageId]) -> tuple[DeviceId, ...]:
    """Return the devices of the stages, each once, in the order of the stages."""
    return tuple(dict.fromkeys(problem.placement.stage_device[stage] for stage in stages))


def stages_on(problem: Problem, chain: Sequence[StageId], devices: Sequence[DeviceId | None]) -> tuple[StageId, ...]:
    """Return the stages of `chain` that run on one of `devices`, in chain order; None among these is no device."""
    return tuple(stage for stage in chain if problem.placement.stage_device[stage] in devices)


def owner_of(problem: Problem, chain: Sequence[StageId], stages: Sequence[StageId]) -> DeviceId | None:
    """Return the device whose span the modelled stages of a chain bound best: that of the chain's first stage.

    None for the makespan, and if the chain's first stage is not modelled.
    """
    span = not problem.objective.from_zero
    return problem.placement.stage_device[chain[0]] if span and chain[0] in stages else None


def in_flight(problem: Problem, stage: StageId) -> int:
    """Return the most micro-batches that can be between forward and gradient on a stage, by its device's memory.

    Less than 1 if the memory has no room for one.
    """
    room, taken = problem.room[problem.placement.stage_device[stage]], problem.stages[stage].activation
    count = len(problem.microbatches_of[stage])
    return count if room is None or taken <= 0 else min(count, room // taken)


def state_count(problem: Problem, stages: Sequence[StageId]) -> int:
    """Return an upper estimate of the number of states of one layer, if these stages of a chain are modelled."""
    return distribution_count(in_flight(problem, stages[0]), 2 * len(stages))


def distribution_count(microbatches: int, steps: int) -> int:
    """Return an estimate of the number of states of a layer.

    They are distributions of `microbatches` in flight over a chain's `steps`.
    """
    return comb(steps + microbatches, steps) // steps
