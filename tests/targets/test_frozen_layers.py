"""Each runtime of `plan --for` has a plan with frozen layers that it can run, or refuses it at once."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import Plan
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from runtime.partitions.plan_settings import settings_of
from targets.schedules import written_for
from tests.support.plans_at_once import at_once

_BACKWARD_OF_EVERY_STAGE = {"deepspeed", "megatron-hybrid-order", "megatron-order", "torchtitan"}
_OF_INFERENCE = {"sglang", "vllm"}


def layer(name: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "count": count, "forward": 1, "backward": 1, "weight": 1, "activation": 1} | more


def frozen(name: str, count: int = 1) -> dict[str, Any]:
    return layer(name, count, frozen=True, backward=0, weight=0)


# Layers, and the runtimes that have no plan for two devices.
CASES = {
    "embedding": ([frozen("embedding"), layer("dense", 8), layer("head")], _OF_INFERENCE),
    "first layers": ([frozen("embedding"), frozen("layer", 5), layer("dense", 3), layer("head")], _OF_INFERENCE),
    "last layers": (
        [layer("embedding"), layer("dense", 3), layer("layer", 5, frozen=True), layer("head")],
        _OF_INFERENCE,
    ),
    "all but one": (
        [frozen("embedding"), frozen("layer", 7), layer("dense")],
        _OF_INFERENCE | _BACKWARD_OF_EVERY_STAGE,
    ),
    "all": ([frozen("embedding"), frozen("layer", 8)], _BACKWARD_OF_EVERY_STAGE),
}


@pytest.mark.parametrize("case", CASES)
def test_each_runtime_has_a_plan_that_it_can_run_or_refuses_at_once(case: str) -> None:
    layers, refusing = CASES[case]
    document = {"devices": 2, "microbatches": 4, "placement": ["linear", "v-shape"], "layers": layers}
    problem = plan_problem_from(document)
    refused, found = set[str](), dict[PlanProblem, Plan]()
    for form in PARTITION_FORMATS:
        try:
            left, words = restricted(problem, form.name, form.limits)
        except BadInput as error:
            (line,) = error.mistakes
            assert line.startswith(f"--for {form.name}: found")
            refused.add(form.name)
            continue
        if left not in found:
            found[left] = at_once(left)
        plan = found[left]
        own = settings_of(form, plan, plan, words)
        assert plan.best is not None and own.settings is not None, (form.name, own.refusal)
        if form.name in RESTRICTIONS:
            assert written_for(plan.best.timeline, form.name) is not None, form.name
    assert refused == refusing


def test_orders_that_an_exporter_writes_have_a_backward_of_every_stage() -> None:
    assert {form.name for form in PARTITION_FORMATS if form.name in RESTRICTIONS} == _BACKWARD_OF_EVERY_STAGE


def test_a_partition_given_with_frozen_layers_alone_on_the_first_stage_is_refused() -> None:
    document = {"devices": 2, "microbatches": 4, "partition": [6, 4], "layers": CASES["first layers"][0]}
    problem = plan_problem_from(document)
    with pytest.raises(BadInput, match=r"found 6 frozen layers .* and a partition with 6 layers on the first stage"):
        restricted(problem, "megatron-order", PARTITION_FORMATS["megatron-order"].limits)
