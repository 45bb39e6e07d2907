"""Small problems whose memory over time or whose copies decide how long they take."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem import placement
from pipesched.problem.features.device_resources import DeviceResources, Pool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Stage

_STREAMS = (("d2h", "h2d"), ("d2h", "h2d"), ("copy", "copy"), ("copy", COMPUTE))


def small_memory(rng: Random) -> Problem:
    """Return a problem of one or two devices with room for one or two activations, and copies as long as all passes."""
    where = rng.choice((placement.linear(1), placement.linear(2), placement.explicit(1, [0, 0])))
    microbatches = 2 if where.stages > 1 else rng.randint(2, 3)
    out, back = rng.choice(_STREAMS)
    splits = rng.random() < 0.5
    longest = rng.choice((4, 12))
    stages = tuple(_stage(rng, (out, back), splits, longest) for _ in range(where.stages))
    pools = []
    for stages_of_device in where.stages_of:
        own = sum(stages[s].activation for s in stages_of_device)
        pools.append(Pool(own + rng.choice((0, 0, 0, 1, own))))
    shared = tuple(SharedStream(name, (0, 1)) for name in dict.fromkeys((out, back)) if name != COMPUTE)
    objective = rng.choice((Objective.MAKESPAN, Objective.MAKESPAN, Objective.SPAN))
    one = Problem(where, microbatches, stages, tuple(pools), objective)
    return (
        replace(one, resources=DeviceResources(shared_streams=shared))
        if where.devices == 2 and rng.random() < 0.2
        else one
    )


def _stage(rng: Random, streams: tuple[str, str], splits: bool, longest: int) -> Stage:
    activation = rng.choice((1, 2))

    def some() -> int:
        return rng.randint(0, longest)

    forward, backward, weight = some(), some(), some()
    freed = rng.choice((0, 0, rng.randint(-1, activation))) if splits else 0
    fused = rng.randint(0, backward + weight + 1) if splits else backward
    amount = rng.choice((activation, activation, rng.randint(0, activation)))
    offload = Offload(some(), some(), *streams, amount) if rng.random() < 0.75 else None
    modes: tuple[Recomputation, ...] = (Recomputation("full", some(), rng.choice((0, 0, rng.randint(0, activation)))),)
    modes = modes if rng.random() < 0.5 or offload is None else ()
    return Stage(
        forward,
        backward,
        weight if splits else None,
        fused,
        rng.choice((0, rng.randint(0, longest))),
        activation=activation,
        freed=freed,
        offload=offload,
        recompute=modes,
        may_keep=rng.random() < 0.75,
    )
