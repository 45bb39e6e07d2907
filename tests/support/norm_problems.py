"""Tiny problems whose optimizer steps wait for the norm of all gradients, at random."""

from __future__ import annotations

from random import Random

from pipesched.problem.frozen_stages import with_frozen_stages
from pipesched.problem.gradient_norm import with_norm
from pipesched.problem.problem import Problem
from tests.support.collective_problems import tiny_collectives
from tests.support.task_brute_force import tiny_reductions


def tiny_norms(random: Random) -> Problem:
    """Return a problem of reductions and steps, with gatherings, pieces, modules or frozen stages, and a norm on any
    stream."""
    while True:
        one = tiny_reductions(random) if random.random() < 0.5 else tiny_collectives(random)
        if not any(stage.once for stage in one.stages):
            continue
        chain = one.placement.chains[0]
        if not one.objective.by_device and len(one.placement.chains) == 1 and not one.network.options:
            one = with_frozen_stages(one, chain[:1]) if random.random() < 0.2 else one
        stream = random.choice((*one.streams, "dp", "dp"))
        found = with_norm(one, stream, random.randint(0, 4))
        if found.network.occupies_several or random.random() < 0.1:
            return found
