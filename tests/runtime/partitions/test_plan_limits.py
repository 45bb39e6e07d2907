"""A plan problem restricted to a runtime has the plans whose settings can be written, all of them and no others."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from random import Random

import pytest

from pipesched.errors import BadInput
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, mistakes
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule, why_not_expressible
from runtime.partitions.catalogue import PARTITION_FORMATS, PartitionFormat
from runtime.partitions.plan_limits import restricted
from runtime.partitions.staged_model import staged
from tests.support.daily import daily
from tests.support.plan_brute_force import partitions
from tests.support.varied_plans import varied_plan


def _written(form: PartitionFormat, plan: PlanProblem, choice: Choice, partition: Partition) -> bool:
    try:
        form.write(staged(plan.model, partition, choice.on(plan.cluster.devices), plan.microbatches))
    except BadInput:
        return False
    return True


def _frozen(model: Model, before: int) -> Model:
    """The model with its first layers frozen."""
    sequence = model.sequence
    layers = (replace(one, name=f"{one.name} frozen", forward_only=True) for one in sequence[:before])
    closed = {*range(len(sequence))} - {*model.cuts}
    entries = (replace(one, with_previous=at in closed) for at, one in enumerate([*layers, *sequence[before:]]))
    return replace(model, layers=tuple(entries))


def _allowed(plan: PlanProblem, choice: Choice, partition: Partition) -> bool:
    kinds = {kind.name: {way.name for way in kind.recompute} for kind in plan.model.kinds}
    known = all(one.mode in kinds[one.layer] for row in partition.recompute for one in row)
    return (
        choice in plan.choices
        and known
        and plan.counts in (None, partition.counts)
        and not mistakes(plan.model, partition)
        and why_not_expressible(plan.model, partition, plan.recompute_rule) is None
    )


@pytest.mark.parametrize("form", daily(list(PARTITION_FORMATS), 2), ids=lambda form: form.name)
def test_restricted_problems_have_the_plans_that_can_be_written(form: PartitionFormat) -> None:
    told = refused = 0
    equal = form.limits.equal_stages
    for seed in range(250 if equal else 32 if form.limits.forwards_only else 16):
        whole = replace(varied_plan(Random(seed)), recompute_rule=RecomputeRule.ANY, recompute=Decide.FREE)
        # Few of them can be cut equally.
        whole = replace(whole, microbatches=6) if equal else whole
        if form.limits.split_backwards and not whole.model.splittable:
            continue
        if form.limits.forwards_only and seed % 8:
            layers = tuple(replace(layer, forward_only=True) for layer in whole.model.layers)
            whole = replace(whole, model=replace(whole.model, layers=layers))
        if form.limits.every_stage_trains and seed % 4 == 1:
            whole = replace(whole, model=_frozen(whole.model, 1 + seed % 3))
        try:
            left, _ = restricted(whole, form.name, form.limits)
        except BadInput:
            left = replace(whole, choices=())
        for choice in whole.choices:
            if len(choice.on(whole.cluster.devices).chains[0]) > whole.model.most_stages:
                continue
            for partition in partitions(whole, choice):
                written = _written(form, whole, choice, partition)
                assert _allowed(left, choice, partition) is written, (seed, choice, partition)
                told += written
                refused += not written
    assert told > (3 if equal else 40) and refused > 40


def test_what_a_runtime_does_not_run_is_refused_with_what_it_does() -> None:
    plan = next(one for one in map(varied_plan, map(Random, count())) if one.model.splittable)
    wave = replace(plan, choices=(Choice("wave", 3),), microbatches=6)
    for form in PARTITION_FORMATS:
        with pytest.raises(
            BadInput, match=f"^--for {form.name}: found placement wave, 3 chunks; allowed: {form.limits.placements[0]}"
        ):
            restricted(
                wave, form.name, replace(form.limits, mtp=next(iter(type(form.limits.mtp))), forwards_only=False)
            )
    limits = PARTITION_FORMATS["megatron"].limits
    with pytest.raises(BadInput, match="found schedule zb-h1; allowed: 1f1b, interleaved-1f1b"):
        restricted(replace(plan, schedules=("zb-h1",)), "megatron", limits)
