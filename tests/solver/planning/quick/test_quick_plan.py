"""The first plan of a problem: valid, timed and sized as the simulator does, within the runtime's rules and memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import why_not_expressible
from pipesched.results.plan_figures import step_time
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.planning.quick.quick_plan import quick_plan


def model(
    devices: int, microbatches: int, memory: float, experts: bool, also: dict[str, Any] | None = None, **more: Any
) -> PlanProblem:
    """`also` are more keys of the model, `more` of the file."""
    shape: dict[str, Any] = {
        "layers": 14, "hidden": 2048, "vocabulary": 64000, "attention": {"heads": 16}, "ffn": 8192, "sequence": 2048,
        "flash": False, "parallel": {"tensor": 2, "data": 2},
    }  # fmt: skip
    if experts:
        shape |= {"dense_layers": 2, "mtp_layers": 1, "experts": {"number": 8, "per_token": 2, "ffn": 2048}}
    shape |= also or {}
    rates = {"sustained_tflops": 300, "memory": memory, "pipeline_bandwidth": 25, "tensor_bandwidth": 200,
             "data_bandwidth": 50}  # fmt: skip
    return plan_problem_from(
        {"devices": devices, "microbatches": microbatches, "chunks": [1, 2, 3], "model": shape, "hardware": rates}
        | more
    )


# GiB, from ample to what makes every layer be recomputed.
MEMORY = (20.0, 4.0, 3.0, 2.2)
CASES = [*product((1, 2, 4), (4, 12), (*MEMORY, 1.5), (False, True))]


@pytest.mark.parametrize("target", [None, "megatron", "torchtitan", "flagscale"])
def test_times_peaks_and_rules(target: str | None) -> None:
    found = again = 0
    for devices, microbatches, memory, experts in CASES:
        plan = model(devices, microbatches, memory, experts)
        try:
            if target is not None:
                plan = restricted(plan, target, PARTITION_FORMATS[target].limits)[0]
        except BadInput:
            continue
        first = quick_plan(plan)
        if first is None:
            continue
        own = first.candidate(plan)
        metrics = measure(own.timeline)
        found += 1
        again += any(first.partition.recompute_counts())
        assert validate(own.timeline) == []
        assert step_time(plan, own) == first.step
        assert metrics.peak_memory == pytest.approx(list(first.peak_memory))
        assert metrics.idle(plan.objective) == pytest.approx(first.idle)
        assert plan.cluster.capacity is not None and max(metrics.peak_memory) <= plan.cluster.capacity[0]
        assert why_not_expressible(plan.model, first.partition, plan.recompute_rule) is None
        assert first.choice in plan.choices and (not plan.schedules or first.schedule in plan.schedules)
    assert found >= 12 and again >= 2


@pytest.mark.parametrize("frozen", [["embedding", "dense"], ["embedding", "dense", "moe"]])
def test_frozen_layers_are_timed_as_the_simulator_does(frozen: list[str]) -> None:
    """No gradient is sent to stages of frozen layers alone, however long a transfer takes."""
    found = stopped = 0
    for devices, microbatches, chunks, transfer in product((2, 4), (4, 12), (1, 2), (0.01, 0.7, 20)):
        also = {"frozen": frozen, "dense_layers": 9}
        plan = model(devices, microbatches, 60, True, also, chunks=chunks, transfer=transfer)
        first = quick_plan(plan)
        assert first is not None
        own = first.candidate(plan)
        stages = own.timeline.problem.stages
        found += 1
        stopped += any(stage.forward_only for stage in stages[:-1])
        assert validate(own.timeline) == []
        assert step_time(plan, own) == first.step
        assert measure(own.timeline).peak_memory == pytest.approx(list(first.peak_memory))
        assert measure(own.timeline).idle(plan.objective) == pytest.approx(first.idle)
    assert found == 24 and stopped >= 8


def test_less_memory_is_never_faster_and_recomputes_where_it_must() -> None:
    steps = []
    for memory in MEMORY:
        first = quick_plan(model(4, 12, memory, False))
        assert first is not None
        steps.append((first.step.total, any(first.partition.recompute_counts())))
    assert [step for step, _ in steps] == sorted(step for step, _ in steps)
    assert steps[0][1] is False and steps[-1][1] is True


def test_decisions_of_the_file_are_kept() -> None:
    free = model(4, 12, 60, False)
    always = quick_plan(replace(free, recompute=Decide.ALWAYS))
    assert always is not None and sum(sum(stage.values()) for stage in always.partition.recompute_counts()) == 14
    given = quick_plan(replace(free, counts=(3, 4, 4, 5)))
    assert given is not None and given.partition.counts == (3, 4, 4, 5)
    assert quick_plan(replace(model(4, 12, 2.2, False), recompute=Decide.NEVER)) is None


def test_none_where_the_orders_do_not_apply() -> None:
    assert quick_plan(model(4, 12, 60, False, placement="v-shape", chunks=2)) is None
    assert quick_plan(model(4, 12, 60, False, schedule="gpipe")) is None
    assert quick_plan(model(4, 12, 1, False)) is None
