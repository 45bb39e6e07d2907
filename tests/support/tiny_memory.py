"""Tiny problems whose activations may be offloaded or recomputed: every branch of memory, streams and hosts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

from pipesched.problem import placement
from pipesched.problem.features.device_resources import DeviceResources, HostPool, Pool, SharedStream
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import with_microbatch_scale
from pipesched.problem.stage import COMPUTE, Stage

# Placements with micro-batches, few enough that every order can be tried.
SHAPES: tuple[tuple[Placement, int], ...] = (
    (placement.linear(1), 2),
    (placement.linear(1), 2),
    (placement.explicit(1, [0, 0]), 1),
    (placement.linear(2), 1),
    (placement.bidirectional(2), 2),
)
_STREAMS = (("d2h", "h2d"), ("copy", "copy"), ("copy", COMPUTE))


def tiny_memory(rng: Random) -> Problem:
    """Return a problem with tight memory, partial copies, host limits, shared links and several recomputation modes.

    Some stages must save activations, others cannot.
    """
    where, microbatches = rng.choice(SHAPES)
    out, back = rng.choice(_STREAMS)
    splits = microbatches == 1 and rng.random() < 0.5
    stages = tuple(_stage(rng, (out, back), splits) for _ in range(where.stages))
    pools = []
    for stages_of_device in where.stages_of:
        most = max(stages[s].activation for s in stages_of_device)
        whole = sum(stages[s].activation for s in stages_of_device) * microbatches
        pools.append(Pool(None if rng.random() < 0.15 else rng.randint(most, max(most, whole))))
    hosts, shared = list[HostPool](), tuple[SharedStream, ...]()
    if rng.random() < 0.4:
        alone = [(device,) for device in range(where.devices)]
        groups = alone if rng.random() < 0.5 else [tuple(range(where.devices))]
        hosts = [HostPool(rng.randint(0, 4), group) for group in groups]
    if where.devices == 2 and rng.random() < 0.5:
        shared = tuple(SharedStream(name, (0, 1)) for name in dict.fromkeys((out, back)) if name != COMPUTE)
    objective = rng.choice((Objective.MAKESPAN, Objective.MAKESPAN, Objective.SPAN))
    one = Problem(where, microbatches, stages, tuple(pools), objective)
    return replace(one, resources=DeviceResources(shared_streams=shared, hosts=tuple(hosts)))


def tiny_unequal_memory(rng: Random) -> Problem:
    """Return a problem of `tiny_memory` with micro-batches of several sizes, in a fixed or free order.

    Memory mostly grows with the largest of them.
    """
    one, scale = tiny_memory(rng), list[Fraction]()
    while set(scale) <= {1}:
        scale = [Fraction(rng.choice((1, 2, 3)), rng.choice((1, 2))) for _ in range(one.microbatches)]
    found = with_microbatch_scale(one, scale, fixed=rng.random() < 0.4)
    more = max(scale) if rng.random() < 0.9 else 1
    pools = (Pool(None if own.capacity is None else ceil(own.capacity * more), own.static) for own in found.pools)
    return replace(found, pools=tuple(pools))


def _stage(rng: Random, streams: tuple[str, str], splits: bool) -> Stage:
    activation, longest = rng.randint(1, 3), rng.choice((2, 5))

    def some() -> int:
        return rng.randint(0, longest)

    backward, weight = some(), some()
    freed = rng.choice((0, rng.randint(-1, activation))) if splits else 0
    costs = (some(), backward, weight if splits else None, rng.randint(0, 2 * longest + 2) if splits else backward)
    kind = rng.random()
    offload = Offload(some(), some(), *streams, rng.randint(0, activation)) if kind < 0.65 else None
    modes = tuple(
        Recomputation(f"way-{n}", some(), rng.randint(0, activation)) for n in range(rng.choice((0, 1, 1, 2)))
    )
    modes = modes if kind > 0.45 else ()
    keep = rng.random() < 0.85 or not (offload or modes)
    return Stage(
        *costs, rng.randint(0, 2), activation=activation, freed=freed, offload=offload, recompute=modes, may_keep=keep
    )
