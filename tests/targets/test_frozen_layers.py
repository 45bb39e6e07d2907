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
from tests.support.daily import daily
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


@pytest.mark.parametrize("case", daily([*CASES], 2))
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


def _refusal(**changes: Any) -> str:
    layers = [frozen("embedding"), frozen("layer", 3), layer("dense", 4), layer("head")]
    document = {"devices": 4, "microbatches": 4, "placement": "linear", "layers": layers} | changes
    with pytest.raises(BadInput) as error:
        restricted(plan_problem_from(document), "megatron-order", PARTITION_FORMATS["megatron-order"].limits)
    (line,) = error.value.mistakes
    return line


def test_an_even_partition_with_frozen_layers_alone_on_the_first_stage_is_refused() -> None:
    assert _refusal(partition="even") == (
        "--for megatron-order: found 4 frozen layers before the first that trains, and partition even with 3 layers on "
        "the first of 4 stages; allowed: a layer that trains on every stage, since it runs a backward of every stage"
    )


def test_an_even_partition_leaves_out_the_placements_that_it_leaves_no_layer_that_trains() -> None:
    layers = [frozen("embedding"), frozen("layer", 3), layer("dense", 8), layer("head")]
    document = {"devices": 2, "microbatches": 4, "partition": "even", "layers": layers} | {
        "placement": ["linear", "interleaved"], "chunks": [1, 2],
    }  # fmt: skip
    left, words = restricted(plan_problem_from(document), "megatron-order", PARTITION_FORMATS["megatron-order"].limits)
    assert [one.placement for one in left.choices] == ["linear"] and "placement linear" in words
    assert at_once(left).best is not None


def test_an_even_partition_that_no_placement_has_is_left_to_the_search() -> None:
    """Two transformer layers are too few for three stages, frozen layers or not."""
    layers = [frozen("embedding"), layer("dense", 2), layer("head")]
    document = {"devices": 3, "microbatches": 4, "placement": "linear", "partition": "even", "layers": layers}
    problem = plan_problem_from(document)
    left, _ = restricted(problem, "megatron-order", PARTITION_FORMATS["megatron-order"].limits)
    assert left.choices == problem.choices and at_once(left).best is None


def test_frozen_layers_are_no_reason_where_they_remove_no_placement() -> None:
    assert "trains" not in _refusal(placement="wave", chunks=2)
    refusal = _refusal(placement="interleaved", chunks=2)
    assert refusal.endswith(
        "(a layer that trains on every stage, since it runs a backward of every stage: up to 5 stages)"
    )
