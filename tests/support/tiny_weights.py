"""Tiny problems in which weight tasks wait in little memory: communication in backwards, some activations offloaded."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem import placement
from pipesched.problem.memory_options import Offload
from pipesched.problem.passes import BW, B, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from tests.support.columns import Costs, Memory, build, with_tasks

# Placements with micro-batches, few enough that every order can be tried.
SHAPES: tuple[tuple[Placement, int], ...] = (
    (placement.linear(1), 2),
    (placement.explicit(1, [0, 0]), 1),
    (placement.explicit(2, [0, 1, 0]), 1),
)


def tiny_weights(rng: Random) -> Problem:
    """Return a problem whose full backward takes as long as B and W, so that it is never better."""
    where, microbatches = rng.choice(SHAPES)

    def some(low: int, high: int) -> tuple[int, ...]:
        return tuple(rng.randint(low, high) for _ in range(where.stages))

    backward, weight, activation = some(1, 5), some(1, 6), some(1, 2)
    both = tuple(b + w for b, w in zip(backward, weight, strict=True))
    capacity = tuple(
        max(activation[s] for s in stages_of_device) + rng.randint(0, 1) for stages_of_device in where.stages_of
    )
    freed = tuple(rng.choice((0, rng.randint(0, a))) for a in activation)
    one = build(
        where,
        microbatches,
        Costs(some(0, 5), backward, weight, both, some(0, 4)),
        Memory(activation, freed, capacity),
        rng.choice((Objective.MAKESPAN, Objective.SPAN)),
    )
    parts = {}
    for s in range(where.stages):
        tasks = [TaskSpec(COMPUTE, backward[s]), TaskSpec("ep", rng.randint(0, 3))]
        rng.shuffle(tasks)
        weights = TaskSpec(COMPUTE, weight[s], after=rng.choice((None, 0, 1)))
        parts |= {(B, s): tuple(tasks), (W, s): (weights,), (BW, s): (*tasks, weights._replace(after=None))}
    one = with_tasks(one, parts)
    copies = [Offload(rng.randint(0, 2), rng.randint(0, 2), "d2h", "h2d", a) for a in activation]
    stages = (replace(s, offload=copy) if rng.random() < 0.3 else s for s, copy in zip(one.stages, copies, strict=True))
    return replace(one, stages=tuple(stages))
