"""Bound over all partitions: one micro-batch goes there and back, the others pass each stage one at a time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import islice
from random import Random

import pytest

from pipesched.checking.partitions.by_device import no_better_plan
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from solver.planning.partitions.by_device import applies, bound_by_device
from tests.support.exhaustive.optimum import least_value
from tests.support.plan_brute_force import partitions, tiny_plan
from tests.support.unequal_devices import on_unequal_devices
from tests.support.varied_plans import varied_plan

MTP = [
    {"name": "embedding", "forward": 0.1, "backward": 0},
    {"name": "t", "count": 61, "forward": 1, "backward": 0, "memory": 0.5},
    {"name": "mtp", "count": 3, "forward": 2.7, "backward": 5.4, "memory": 4, "activation": 1},
]
INFERENCE = [
    {"name": "embedding", "forward": 0.1, "backward": 0, "memory": 2.1},
    {"name": "layer", "count": 80, "forward": 1, "backward": 0, "memory": 0.856},
    {"name": "head", "forward": 0.5, "backward": 0, "memory": 2.1},
]


@pytest.mark.parametrize(("layers", "microbatches", "value"), [(MTP, 64, "841.4"), (INFERENCE, 8, "154.1")])
def test_passes_that_need_no_way_back(layers: list[dict[str, object]], microbatches: int, value: str) -> None:
    """Latency 85.4 and 63 times 12 layers; latency 80.6 and 7 times 10.5."""
    document = {"devices": 8, "microbatches": microbatches, "layers": layers, "placement": "linear"}
    plan = plan_problem_from(document)
    (choice,) = plan.choices
    assert bound_by_device(plan, choice, None, lambda: False) * plan.tick == Fraction(value)
    assert no_better_plan(plan, choice, Fraction(value))
    assert not no_better_plan(plan, choice, Fraction(value) + plan.tick)


def _forward_alone(random: Random, plan: PlanProblem) -> PlanProblem:
    """Some layers without a backward."""
    without = {one.name for one in plan.model.layers if random.random() < 0.6}
    layers = tuple(
        replace(one, backward=Fraction(0), weight=one.weight and Fraction(0), fused=None)
        if one.name in without
        else one
        for one in plan.model.layers
    )
    return replace(plan, model=replace(plan.model, layers=layers))


def test_against_every_partition_and_order() -> None:
    attained = tried = 0
    for seed in range(45):
        random = Random(seed)
        plan = _forward_alone(random, (varied_plan if seed % 2 else tiny_plan)(random))
        plan = on_unequal_devices(random, plan) if seed % 4 > 1 else plan
        for choice in plan.choices:
            length = len(choice.on(plan.cluster.devices).chains[0])
            cuts = [] if length > plan.model.most_stages else [*islice(partitions(plan, choice), 31)]
            if not applies(plan, choice) or not 0 < len(cuts) <= 30:
                continue
            bound = bound_by_device(plan, choice, None, lambda: False)
            values = (least_value(plan.problem(choice, one), plan.objective, bound) for one in cuts)
            known = [value for value in values if value is not None]
            assert all(value >= bound for value in known), (seed, choice)
            assert no_better_plan(plan, choice, bound * plan.tick), (seed, choice)
            attained += bound in known
            tried += 1
    assert tried > 30 and attained > 10
