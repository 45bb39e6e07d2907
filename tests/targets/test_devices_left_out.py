"""A plan for a runtime that may leave devices out is as good as with each number of devices, and its proof covers all.

The limits of runtimes differ with that number: placements, partitions, orders and whether it runs any plan at all.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest

from pipesched.checking.finding import Verdict
from pipesched.checking.memory.more_memory import with_more_memory
from pipesched.checking.plan_check import check_plan_bound, weakest
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, write_json
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import Plan
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plans_at_once import at_once

_MOST = 4


def _layer(name: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "count": count, "forward": 1, "backward": 1, "weight": 1, "activation": 1} | more


def _frozen(name: str, count: int = 1) -> dict[str, Any]:
    return _layer(name, count, frozen=True, backward=0, weight=0)


def _drawn(random: Random) -> dict[str, Any]:
    """A file without devices: a model whose first layers may be frozen, and several placements."""
    frozen = random.choice((0, 0, 1, 2, 4))
    layers = [_frozen("embedding")] * (frozen > 0) + [_frozen("layer", frozen - 1)] * (frozen > 1)
    layers += [_layer("embedding")] * (frozen == 0)
    layers += [_layer("dense", random.randint(2, 8), forward=random.randint(1, 3), backward=random.randint(1, 3))]
    layers += [_layer("mtp")] * (random.random() < 0.2)
    layers += [_layer("head", forward=random.randint(1, 4))]
    if random.random() < 0.15:
        layers = [one | {"backward": 0, "weight": 0, "frozen": True} for one in layers]
    return {
        "microbatches": random.randint(1, 8),
        "placement": random.choice(("linear", "v-shape", ["linear", "interleaved"], ["linear", "v-shape"], "free")),
        "chunks": random.choice((1, 2, [1, 2], [1, 2])),
        "partition": random.choice(("free", "free", "even")),
        "layers": layers,
        "objective": random.choice(("makespan", "span")),
    }


def _on(document: dict[str, Any], form: str, *classes: dict[str, Any]) -> PlanProblem:
    own = PARTITION_FORMATS[form]
    return restricted(plan_problem_from(document | {"cluster": [*classes]}), own.name, own.limits)[0]


@pytest.mark.parametrize("seed", daily(range(8), 8))
def test_as_good_as_with_each_number_of_devices(seed: int) -> None:
    """Of files that are drawn until a few plans are compared; the runtimes refuse all of some."""
    random, compared = Random(seed), 0
    for _ in range(4):
        compared += _compared(_drawn(random), random.choice((0.1, 0.5, 1))) if compared < 8 else 0
    assert compared >= 8


def _compared(document: dict[str, Any], speed: float) -> int:
    """The number of plans of one number of devices that are no better than that of any number, of all runtimes."""
    known, compared = dict[PlanProblem, Plan](), 0

    def found(problem: PlanProblem) -> Plan:
        if problem not in known:
            known[problem] = at_once(problem)
        return known[problem]

    for form in PARTITION_FORMATS:
        values = list[Fraction]()
        numbers = set[int]()
        for more in range(_MOST):
            classes = [{"devices": 1, "speed": 1}] + [{"devices": more, "speed": speed}] * (more > 0)
            try:
                one = found(_on(document, form.name, *classes))
            except BadInput:
                continue
            numbers.add(more + 1)
            values += [] if one.value is None else [one.value]
        try:
            whole = _on(document, form.name, {"devices": 1}, {"devices": f"0..{_MOST - 1}", "speed": speed})
        except BadInput:
            assert not numbers, form.name
            continue
        assert {part.cluster.devices for part in whole.variants.values()} == numbers, form.name
        if values:
            best = found(whole)
            assert best.value is not None and best.value <= min(values), form.name
            assert best.lower_bound <= min(values), form.name
            compared += len(values)
    return compared


# Files on two devices or more, the runtime, and its optimum, which is that on two devices.
_LAYERS = [
    {"name": "embedding", "forward": 1, "backward": 0, "weight": 0, "activation": 1},
    {"name": "dense", "count": 4, "forward": 2, "backward": 4, "activation": 1},
    {"name": "head", "forward": 1, "backward": 2, "activation": 1},
]
_FROZEN = [_LAYERS[0] | {"frozen": True}, *_LAYERS[1:]]
_BOTH: dict[str, Any] = {"placement": ["linear", "interleaved"], "chunks": [1, 2]}
CASES = {
    "groups": ({"microbatches": 3, "layers": _LAYERS} | _BOTH, "megatron-order", "placement linear on 4 devices"),
    "layers divide": (
        {"microbatches": 4, "layers": _LAYERS} | _BOTH,
        "mindspeed",
        "placement linear on 3 or 4 devices",
    ),
    "frozen": ({"microbatches": 4, "layers": _FROZEN} | _BOTH, "megatron-order", "placement linear on 3 or 4 devices"),
    "too few that train": (
        {"microbatches": 4, "layers": [_frozen("embedding"), _frozen("layer", 3), _layer("dense"), _layer("head")]},
        "megatron-order",
        "no plan on 3 devices (found 4 frozen layers before the first that trains, and too few behind them",
    ),
    "micro-batches": (
        {
            "microbatches": 5,
            "placement": "v-shape",
            "layers": [_layer("embedding"), _layer("dense", 8), _layer("head")],
        },
        "mindspeed-dualpipev",
        "no plan on 4 devices (found 5 micro-batches; allowed: at least 2 for each of the 4 devices)",
    ),
    "chunks": (
        {"microbatches": 4, "layers": _FROZEN, "placement": "interleaved", "chunks": 2},
        "megatron-order",
        "no plan on 3 or 4 devices (found placement interleaved, 2 chunks",
    ),
}


@pytest.mark.parametrize("case", daily([*CASES], 2))
def test_limits_of_the_most_devices_are_not_those_of_fewer(case: str) -> None:
    document, name, text = CASES[case]
    form = PARTITION_FORMATS[name]
    problem = plan_problem_from(document | {"cluster": [{"devices": 2}, {"devices": "0..2", "speed": 0.1}]})
    whole, words = restricted(problem, name, form.limits)
    assert any(text in word for word in words), words
    alone, _ = restricted(plan_problem_from(document | {"devices": 2}), name, form.limits)
    first = whole.variants["2 of speed 1"]
    assert (first.model, first.choices, first.counts) == (alone.model, alone.choices, alone.counts)
    found, best = plan(whole, counted(4)), plan(alone, counted(2))
    assert found.value == best.value and best.value is not None and found.lower_bound <= best.value
    assert weakest(check_plan_bound(whole, found.lower_bound, found.choices, found.variants)) in (
        Verdict.VERIFIED,
        Verdict.TRUSTED,
    )
    again = plan_from_document(read_json(write_json(plan_document(whole)), ""), "")
    assert again == whole and again.variants == whole.variants


def test_parts_have_more_memory_too() -> None:
    document = CASES["frozen"][0] | {"memory": {"capacity": 20}}
    problem = plan_problem_from(document | {"cluster": [{"devices": 2}, {"devices": "0..2", "speed": 0.1}]})
    whole, _ = restricted(problem, "megatron-order", PARTITION_FORMATS["megatron-order"].limits)
    more = with_more_memory(whole, (Fraction(30),) * 4)
    assert {room for one in more.variants.values() for room in one.cluster.capacity or ()} == {Fraction(30)}
    assert [*more.variants] == [*whole.variants]


def test_a_reason_is_given_where_no_number_of_devices_has_a_plan() -> None:
    form = PARTITION_FORMATS["mindspeed-dualpipev"]
    document = CASES["micro-batches"][0] | {"microbatches": 3}
    problem = plan_problem_from(document | {"cluster": [{"devices": 2}, {"devices": "0..1", "speed": 0.1}]})
    with pytest.raises(BadInput) as error:
        restricted(problem, form.name, form.limits)
    assert [line.partition("at least ")[2] for line in error.value.mistakes] == [
        "2 for each of the 2 devices",
        "2 for each of the 3 devices",
    ]
