"""The same plan problem on devices of unequal speed and memory."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm
from random import Random

from pipesched.layers.plan_problem import PlanProblem

_SLOWNESS = (Fraction(1), Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 2), Fraction(5, 3))


def on_unequal_devices(random: Random, plan: PlanProblem) -> PlanProblem:
    """Return the plan problem with a random speed of each device, and by chance more or less memory on some."""
    cluster = plan.cluster
    slowness = tuple(random.choice(_SLOWNESS) for _ in range(cluster.devices))
    capacity = cluster.capacity
    if capacity is not None and random.random() < 0.5:
        capacity = tuple(max(plan.resolution, each + random.choice((-1, 0, 2)) * plan.resolution) for each in capacity)
    tick = plan.tick / lcm(*(each.denominator for each in slowness))
    return replace(plan, cluster=replace(cluster, slowness=slowness, capacity=capacity), tick=tick)
