"""Small problems whose activations may move to partner devices, whose memory in all is too little for some orders."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.features.device_resources import DeviceResources, Pool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import BW, F
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import with_microbatch_scale
from pipesched.problem.stage import COMPUTE, PassMemory, Stage, TaskSpec
from tests.support.makers import problem

_NO_MEMORY = PassMemory()

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
    """Return a problem with long transfers, so that many micro-batches are in flight, and memory for few of them.

    It has at most `most` micro-batches; some stages may recompute, offload to the host, or keep a part.
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


def further_partners(rng: Random) -> Problem:
    """Return a problem of `tiny_partners` with one more feature, which an earlier relaxation leaves out or turns into
    stages."""
    return rng.choice((_unequal, _with_workspace, *(_of_tasks,) * 3, _with_blocks, _in_pieces))(rng)


def _unequal(rng: Random) -> Problem:
    one, scale = tiny_partners(rng, 2), [Fraction(1), Fraction(rng.choice((1, 2, 3)), rng.choice((1, 2)))]
    rng.shuffle(scale)
    found = with_microbatch_scale(one, scale, fixed=rng.random() < 0.5)
    pools = (own.capacity and ceil(own.capacity * max(scale)) for own in found.pools)
    return replace(found, pools=tuple(Pool(capacity) for capacity in pools))


def _with_workspace(rng: Random) -> Problem:
    one = tiny_partners(rng, 2)
    needs = [PassMemory(*(rng.randint(0, 2) for _ in range(3 if one.splittable else 2))) for _ in one.stages]
    later = [rng.choice((_NO_MEMORY, _NO_MEMORY, PassMemory(forward=1))) for _ in one.stages]
    pools = [
        own.capacity
        and own.capacity
        + max((max(needs[s]) for s in stages), default=0)
        + sum(sum(later[s]) * len(one.microbatches_of[s]) for s in stages)
        for own, stages in zip(one.pools, one.placement.stages_of, strict=True)
    ]
    found = one.with_stages(workspace=needs, until_end=later)
    return replace(found, pools=tuple(Pool(capacity) for capacity in pools))


def _of_tasks(rng: Random) -> Problem:
    """Return a problem whose passes have two tasks each, one of them by chance on a second stream.

    By chance the first task of a forward needs nothing of the stage before.
    """
    one, stages = tiny_partners(rng, 2), list[Stage]()
    lookups, another = rng.random() < 0.3, rng.random() < 0.3
    for stage in one.stages:
        first = TaskSpec("other" if another else COMPUTE, rng.randint(0, 3), needs_input=not lookups)
        forward = (first, TaskSpec(COMPUTE, stage.forward))
        backward = (TaskSpec(COMPUTE, stage.fused), TaskSpec("other" if another else COMPUTE, rng.randint(0, 3)))
        own = replace(stage, backward=stage.fused, weight=None, freed=0)
        stages.append(own.with_tasks({F: forward, BW: backward}))
    return replace(one, stages=tuple(stages))


def _with_blocks(rng: Random) -> Problem:
    one = tiny_partners(rng, 2)
    return one.with_stages(blocks=[Blocks(rng.randint(1, own.forward + own.fused)) for own in one.stages])


def _in_pieces(rng: Random) -> Problem:
    offload = {"out": [0, rng.randint(0, 1)], "in": 1, "on": "copy", "to": rng.choice(([1, "host"], [1, 0]))}
    times = {"forward": [rng.randint(1, 3), 2], "backward": [1, rng.randint(1, 3)], "transfer": rng.randint(0, 4)}
    memory = {
        "activation": rng.randint(1, 2),
        "kept_for_later": rng.choice((0, 1)),
        "capacity": [rng.randint(4, 7) for _ in range(2)],
        "offload": offload,
    }
    return problem(2, rng.randint(1, 2), sequence_chunks=2, times=times, memory=memory, streams=["compute", "copy"])


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
