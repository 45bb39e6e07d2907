"""Tiny problems whose activations move to the memory of another device, which may move its own as well."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pipesched.problem import placement
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.problem import Problem
from tests.support.tiny_memory import tiny_memory

# A pipeline on one device, with a second one that has memory alone.
_SPARE = placement.explicit(2, [0])


def tiny_lent(rng: Random) -> Problem:
    """Return a problem of `tiny_memory` whose activations move from one device to the other, or both to each other."""
    while True:
        one = tiny_memory(rng)
        if not any(stage.offload for stage in one.stages):
            continue
        if one.placement.stages == 1:
            spare = Pool(None if rng.random() < 0.2 else rng.randint(0, 4))
            one = replace(one, placement=_SPARE, pools=(*one.pools, spare))
        if one.devices == 2:
            break
    moving = rng.choice(((0,), (1,), (0, 1), (0, 1)))
    where = one.placement.stage_device
    copies = [
        stage.offload and stage.offload._replace(to=1 - where[s] if where[s] in moving else None)
        for s, stage in enumerate(one.stages)
    ]
    found = one.with_stages(offload=copies)
    # More room for some, of which the other device may have a part.
    more = (pool.capacity and pool.capacity + rng.choice((0, 0, 1, 3)) for pool in found.pools)
    return replace(found, pools=tuple(Pool(capacity) for capacity in more))


def tiny_lent_of_files(rng: Random) -> Problem:
    """Return a problem of `tiny_lent` whose devices all have a stage, as problem files require."""
    while True:
        one = tiny_lent(rng)
        if all(one.placement.stages_of):
            return one
