"""Free memory of a plan: the least that a device has left at its peak, which serving engines fill with KV blocks.

Per layer it is divided by the number of layers on the device that hold keys and values, since an engine gives all
layers as many blocks as its fullest rank has room for.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import gcd, lcm

from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Leaves, PlanProblem
from pipesched.layers.roles import Role, role_of


def holds_cache(layer: LayerType) -> bool:
    """Return True if a layer keeps keys and values when a model serves.

    All layers do except an embedding and a head.
    """
    return role_of(layer.name) in (Role.TRANSFORMER, Role.MTP)


def shares(plan: PlanProblem, choice: Choice, partition: Partition) -> list[int]:
    """Return for each device the number by which its free memory is divided.

    It is 1, or with an amount per layer the number of its layers with keys and values. A device with the number 0 has
    no free memory per layer, and does not count.
    """
    stages_of = choice.on(plan.cluster.devices).stages_of
    if plan.leaves is not Leaves.PER_LAYER:
        return [1] * len(stages_of)
    caches = [sum(map(holds_cache, layers)) for layers in partition.layers_of(plan.model)]
    return [sum(caches[stage % len(caches)] for stage in own) for own in stages_of]


def reserving(plan: PlanProblem, amount: Fraction) -> PlanProblem:
    """Return the plan problem of all plans that leave at least `amount` of memory free, to be searched by time alone.

    The amount, in the file's unit, is taken from the capacity of each device, which must be limited; if the plan asks
    for free memory per layer (`leaves`), it is added to the memory of each layer with keys and values instead.
    """
    per_layer, cluster, model = plan.leaves is Leaves.PER_LAYER, plan.cluster, plan.model
    if per_layer:
        added = (replace(one, memory=one.memory + amount) if holds_cache(one) else one for one in model.layers)
        model = replace(model, layers=tuple(added))
    else:
        assert cluster.capacity is not None
        cluster = replace(cluster, capacity=tuple(room - amount for room in cluster.capacity))
    finer = Fraction(
        gcd(plan.resolution.numerator, amount.numerator), lcm(plan.resolution.denominator, amount.denominator)
    )
    return replace(plan, model=model, cluster=cluster, resolution=finer, leaves=None)


def reserving_more(plan: PlanProblem, amount: Fraction) -> PlanProblem:
    """Return the plan problem of all plans that leave more than `amount` of memory free, in the file's unit.

    Amounts on a device are multiples of the resolution, and are divided by no more layers than the model has. So a plan
    that leaves more leaves more by at least a fixed step, which is reserved too.
    """
    parts = (amount / plan.resolution).denominator
    most = sum(layer.count for layer in plan.model.layers) if plan.leaves is Leaves.PER_LAYER else 1
    # Each device of two chains has each layer twice at most.
    chains = max(len(choice.on(plan.cluster.devices).chains) for choice in plan.choices)
    return reserving(plan, amount + plan.resolution / (parts * most * chains))
