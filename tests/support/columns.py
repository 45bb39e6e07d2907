"""Problems given by columns: for each cost a tuple with an entry a stage, as tests write them and read them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from pipesched.problem.features.device_resources import Pool
from pipesched.problem.passes import PassKind
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import TaskSpec
from pipesched.problem.stage_columns import stages_of


class Costs(NamedTuple):
    """Durations in ticks by stage; `weight` is None where backwards cannot be split, `overlapped` where there are no
    blocks."""

    forward: tuple[int, ...]
    backward: tuple[int, ...]
    weight: tuple[int, ...] | None
    fused: tuple[int, ...]
    transfer: tuple[int, ...]
    overlapped: tuple[int, ...] | None = None


class Memory(NamedTuple):
    """Memory in units: what an activation of each stage takes, what B frees of it, and each device's capacity (None:
    any)."""

    activation: tuple[int, ...]
    freed: tuple[int, ...]
    capacity: tuple[int | None, ...]


def build(where: Placement, m: int, costs: Costs, memory: Memory, objective: Objective = Objective.MAKESPAN) -> Problem:
    """Return the problem of these columns on placement `where`, with `m` micro-batches."""
    stages = stages_of(*costs, activation=memory.activation, freed=memory.freed)
    return Problem(where, m, stages, tuple(map(Pool, memory.capacity)), objective)


def costs_of(problem: Problem) -> Costs:
    """Return the durations of a problem as columns."""
    stages = problem.stages
    return Costs(
        tuple(s.forward for s in stages),
        tuple(s.backward for s in stages),
        tuple(s.weight or 0 for s in stages) if problem.splittable else None,
        tuple(s.fused for s in stages),
        tuple(s.transfer for s in stages),
        tuple(s.blocks.ticks or 0 for s in stages) if problem.overlaps else None,
    )


def with_tasks(problem: Problem, tasks: Mapping[tuple[PassKind, int], tuple[TaskSpec, ...]]) -> Problem:
    """Return the problem with the passes named by (kind, stage) made of these tasks."""
    own = [tuple((kind, found) for (kind, s), found in tasks.items() if s == n) for n in range(len(problem.stages))]
    stages = zip(problem.stages, own, strict=True)
    return replace(problem, stages=tuple(replace(stage, tasks=found) for stage, found in stages))
