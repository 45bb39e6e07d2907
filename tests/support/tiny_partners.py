"""Small problems whose activations move to partners' memory, where all of it together is too little for some orders."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem import placement
from pipesched.problem.features.device_resources import DeviceResources, Pool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Stage

# Placements with the devices that activations move to from each device: one another, or a group of three.
SHAPES: tuple[tuple[Placement, tuple[int | None, ...]], ...] = (
    (placement.linear(2), (1, None)),
    (placement.linear(2), (1, None)),
    (placement.linear(2), (1, 0)),
    (placement.linear(3), (2, None, None)),
    (placement.linear(3), (1, 2, None)),
    (placement.explicit(2, [0, 1, 0]), (1, None)),
    (placement.explicit(2, [0, 1, 0, 1]), (1, None)),
    (placement.bidirectional(2), (1, None)),
)


def tiny_partners(rng: Random, most: int = 3) -> Problem:
    """Transfers as long as several passes, so that many micro-batches are in flight, and memory for few of them.

    At most `most` micro-batches; some stages may recompute, or move to the host, or keep a part.
    """
    where, moving = rng.choice(SHAPES)
    microbatches = 2 if where.stages > 2 else rng.randint(2, most)
    splits, stream = rng.random() < 0.4, rng.choice(("copy", "copy", COMPUTE))
    stages = tuple(_stage(rng, moving[where.stage_device[s]], stream, splits) for s in range(where.stages))
    pools = []
    for stages_of_device in where.stages_of:
        needed = sum(max(own.activation, own.activation - own.freed) for own in (stages[s] for s in stages_of_device))
        pools.append(Pool(None if rng.random() < 0.05 else needed + rng.choice((0, 0, 0, 1, 2))))
    objective = rng.choice((Objective.MAKESPAN, Objective.MAKESPAN, Objective.SPAN))
    one = Problem(where, microbatches, stages, tuple(pools), objective)
    shared = (SharedStream("copy", tuple(range(where.devices))),) if stream != COMPUTE and rng.random() < 0.2 else ()
    return replace(one, resources=DeviceResources(shared_streams=shared))


def _stage(rng: Random, to: int | None, stream: str, splits: bool) -> Stage:
    activation = rng.randint(1, 3)
    backward, weight = rng.randint(1, 3), rng.randint(0, 3)
    freed = rng.choice((0, rng.randint(-1, activation))) if splits else 0
    amount = activation if rng.random() < 0.8 else rng.randint(0, activation)
    moves = to is not None or rng.random() < 0.1
    offload = Offload(rng.randint(0, 1), rng.randint(0, 1), stream, stream, amount, to) if moves else None
    modes = (Recomputation("full", 1, rng.randint(0, activation)),) if rng.random() < 0.1 else ()
    return Stage(
        rng.randint(1, 3),
        backward,
        weight if splits else None,
        rng.randint(backward, backward + weight + 1) if splits else backward,
        rng.choice((0, 1, rng.randint(2, 6))),
        activation=activation,
        freed=freed,
        offload=offload,
        recompute=modes,
        may_keep=rng.random() < 0.9 or not (offload or modes),
    )
