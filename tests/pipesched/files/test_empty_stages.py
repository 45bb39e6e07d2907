"""`empty_stages` of a plan file: stages without a layer, against every partition and order of tiny models."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from pipesched.checking.finding import Verdict
from pipesched.checking.partitions.by_device import no_better_plan
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.errors import BadInput
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan_figures import searched, stage_rows
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.planning.partitions.by_device import bound_by_device
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plan_brute_force import best_value

LAYER: dict[str, Any] = {"name": "layer", "forward": 1, "backward": 2}
HEAD: dict[str, Any] = {"name": "head", "forward": 3, "backward": 6}
DOCUMENT: dict[str, Any] = {
    "devices": 2, "microbatches": 2, "layers": [LAYER | {"count": 2}, HEAD], "placement": "linear", "chunks": 1,
    "empty_stages": True,
}  # fmt: skip
SEEDS = range(16)


def drawn(random: Random) -> dict[str, Any]:
    """One to three layers on two to four stages: memory, unequal devices, split backwards, overheads, spans."""
    devices = random.choice((2, 2, 3))
    chunks = random.choice((1, 1, 2)) if devices == 2 else 1
    split = random.random() < 0.3 and chunks == 1

    def layer(number: int) -> dict[str, Any]:
        one: dict[str, Any] = {"name": f"k{number}", "forward": random.randint(0, 4), "backward": random.randint(1, 5)}
        one |= {"memory": random.randint(0, 2), "activation": random.randint(0, 2)}
        one |= {"weight": random.randint(0, 2)} if split else {}
        if random.random() < 0.3:
            keeps = random.choice((0, 0.5))
            one["recompute"] = [{"name": "full", "time": random.randint(0, 2), "keeps": keeps}]
        return one

    document: dict[str, Any] = {
        "devices": devices,
        "microbatches": 2,
        "layers": [layer(number) for number in range(random.choice((1, 2, 3)))],
        "chunks": chunks,
        "placement": random.choice(("interleaved", "v-shape")) if chunks == 2 else "linear",
        "empty_stages": True,
        "transfer": random.choice((0, 0, 1)),
        "objective": random.choice(("makespan", "makespan", "span")),
    }
    document |= {"memory": {"capacity": random.choice((4, 6, 8))}} if random.random() < 0.5 else {}
    if random.random() < 0.3:
        document["stage_overhead"] = {"forward": 1, "backward": random.randint(0, 1)}
    if random.random() < 0.3 and chunks == 1:
        del document["devices"]
        document["cluster"] = [{"devices": 1}, {"devices": devices - 1, "speed": random.choice((0.5, 2))}]
    return document


def _best(one: PlanProblem) -> Fraction | None:
    return min((value for value in best_value(one).values() if value is not None), default=None)


@pytest.mark.parametrize("seed", daily(SEEDS, 5))
def test_the_plan_is_the_best_of_all_partitions(seed: int) -> None:
    """No bound is above the best of every partition and order, and no check refuses it or goes beyond it."""
    one = plan_problem_from(drawn(Random(seed)))
    best, found = _best(one), plan(one, counted(4))
    assert found.value == best
    if best is None:
        return
    assert found.lower_bound <= best
    assert min(bound_by_device(one, choice, None, lambda: False) for choice in one.choices) * one.tick <= best
    assert not all(no_better_plan(one, choice, best + one.tick) for choice in one.choices)
    findings = check_plan_bound(one, found.lower_bound, found.choices)
    assert weakest(findings) in (Verdict.VERIFIED, Verdict.TRUSTED)
    assert plan_from_document(plan_document(one), "") == one


def test_some_of_them_need_an_empty_stage() -> None:
    """Without empty stages the best is worse there, or there is no plan at all."""
    needing = 0
    for seed in SEEDS:
        document = drawn(Random(seed))
        free, full = (_best(plan_problem_from(document | {"empty_stages": on})) for on in (True, False))
        assert full is None or (free is not None and free <= full)
        needing += free is not None and (full is None or free < full)
    assert needing >= 5


def test_a_partition_with_zeros() -> None:
    given = DOCUMENT | {"partition": [0, 3]}
    found = plan(plan_problem_from(given), counted(2))
    assert found.best is not None and found.best.partition.counts == (0, 3)
    # All layers are on the second device, and nothing keeps it waiting.
    assert found.value == found.lower_bound == 2 * (5 + 10)
    assert next(row.layers for row in stage_rows(found.problem, found.best)) == "no layer"
    assert searched(found.problem) == "of the placement linear, and also without a layer on some stages"
    with pytest.raises(BadInput, match="partition: found no layer on stage 0; allowed: at least one on each stage"):
        plan_problem_from(given | {"empty_stages": False})


def test_runtimes_get_a_layer_on_every_stage() -> None:
    one = plan_problem_from(DOCUMENT)
    for name in ("megatron", "deepspeed"):
        made, words = restricted(one, name, PARTITION_FORMATS[name].limits)
        assert not made.model.empty_stages and "a layer on every stage" in words


def test_frozen_layers_before_all_that_train_are_refused() -> None:
    with pytest.raises(BadInput, match="empty_stages: found with frozen layers before all that train; allowed: false"):
        plan_problem_from(DOCUMENT | {"layers": [LAYER | {"frozen": True}, HEAD]})
