"""Plans near a given one that runtimes can express more often: layers recomputed in the ways that settings can say.

On every stage each keeps no more of a micro-batch than the plan, so it fits in the same order of passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.recompute_rule import FULL
from pipesched.layers.roles import Role, role_of
from pipesched.layers.stage_costs import costs_of
from pipesched.results.plan import Candidate
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate

_Stage = Sequence[LayerType]


def adapted(problem: PlanProblem, candidate: Candidate) -> Iterator[Candidate]:
    """The first layers of each stage recomputed; the same number of them on each; all layers. Valid ones only."""
    partition = candidate.partition
    stages = partition.layers_of(problem.model)
    needed = [_first(problem, partition, at, layers) for at, layers in enumerate(stages)]
    ways: list[list[tuple[Recomputed, ...]]] = []
    if None not in needed:
        counts = [count for count in needed if count is not None]
        ways.append([_leading(layers, count) for layers, count in zip(stages, counts, strict=True)])
        ways.append([_leading(layers, max(counts)) for layers in stages])
    ways.append([_leading(layers, len(layers), (Role.TRANSFORMER, Role.MTP)) for layers in stages])
    for recompute in ways:
        other = Partition(partition.counts, tuple(recompute))
        if other.recompute_counts() != partition.recompute_counts() or other.recompute != partition.recompute:
            timeline = simulate(problem.problem(candidate.choice, other), candidate.timeline.schedule)
            if not validate(timeline):
                yield Candidate(candidate.choice, other, timeline, candidate.schedule)


def _first(problem: PlanProblem, partition: Partition, stage: int, layers: _Stage) -> int | None:
    """The least number of first layers to recompute that keeps no more than the plan does; None where none does."""
    room = costs_of(problem.model, layers, partition.recomputed_on(stage)).activation
    for count in range(len(layers) + 1):
        if costs_of(problem.model, layers, _leading(layers, count)).activation <= room:
            return count
    return None


def _leading(layers: _Stage, count: int, roles: tuple[Role, ...] = (Role.TRANSFORMER,)) -> tuple[Recomputed, ...]:
    """The first so many layers of these roles, recomputed whole; those that have no such way are left out."""
    chosen = [layer for layer in layers if role_of(layer.name) in roles][:count]
    found = Counter((layer.name, way.name) for layer in chosen for way in layer.recompute if way.name in FULL)
    return tuple(Recomputed(name, way, number) for (name, way), number in found.items())
