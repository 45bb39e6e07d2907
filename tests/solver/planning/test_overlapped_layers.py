"""Plans whose layers overlap: the plan problem, bounds over all partitions and orders, and the best cut of an order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from random import Random
from threading import Event

import pytest

from benchmarks.proofs.plan_attack import attack
from heuristics.catalogue import schedule_named
from pipesched import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.simulation.simulator import simulate
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.search.fixed_order import FixedOrder
from tests.support.daily import daily
from tests.support.plan_brute_force import tiny_plan
from tests.support.unequal_devices import on_unequal_devices

LAYERS = [
    {"name": "dense", "forward": 2, "backward": 3, "weight": 1},
    {"name": "moe", "count": 4, "forward": 4, "backward": 3, "weight": 2, "overlapped": 7},
    {"name": "head", "forward": 3, "backward": 3, "weight": 3, "with_previous": True},
]


def document(**keys: object) -> dict[str, object]:
    return {"devices": 2, "microbatches": 4, "layers": LAYERS, "placement": "v-shape"} | keys


def overlapping(random: Random, plan: PlanProblem) -> PlanProblem:
    """With blocks of most layers, which save any part of the shorter pass."""
    saves: dict[str, Fraction | None] = {}
    for layer in plan.model.kinds:
        most = int(min(layer.forward, layer.full_backward) / plan.tick)
        saves[layer.name] = random.choice((None, plan.tick * most, plan.tick * random.randint(0, most)))
    layers = [
        layer
        if (own := saves[layer.name]) is None
        else replace(layer, overlapped=layer.forward + layer.full_backward - own)
        for layer in plan.model.layers
    ]
    return replace(plan, model=replace(plan.model, layers=tuple(layers)))


def test_a_stage_saves_what_its_layers_do_on_its_device() -> None:
    plan = plan_problem_from(document(stage_overhead={"forward": 1, "backward": 1}))
    problem = plan.problem(plan.choices[0], Partition((2, 1, 1, 2)))
    # Of F 4 and BW 5 a block of a layer of experts takes 7: it saves 2, and a stage's saving is that of its layers.
    assert [stage.blocks.saves for stage in problem.stages] == [2, 2, 2, 2]
    assert problem.network.blocks[0, 3] == (2 + 4 + 1) + (5 + 6 + 1) - 2
    uneven = plan.problem(plan.choices[0], Partition((1, 2, 1, 2)))
    assert [stage.blocks.saves for stage in uneven.stages] == [0, 4, 2, 2]
    assert uneven.network.blocks[1, 2] == (8 + 1) + (5 + 1) - 2
    slow = plan_problem_from(document() | {"devices": None, "cluster": [{"devices": 1}, {"devices": 1, "speed": 0.5}]})
    on_slow = slow.problem(slow.choices[0], Partition((1, 2, 1, 2)))
    assert [stage.blocks.saves for stage in on_slow.stages] == [0, 8, 4, 2]


def test_layers_without_the_key_have_no_blocks() -> None:
    plain = [{key: value for key, value in layer.items() if key != "overlapped"} for layer in LAYERS]
    plan = plan_problem_from(document(layers=plain))
    assert not plan.model.overlaps
    assert not plan.problem(plan.choices[0], Partition((2, 1, 1, 2))).overlaps


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"overlapped": 4},
            r"layers\[0\]\.overlapped: found 4; allowed: 5, the longer of forward and full backward, to 9",
        ),
        ({"overlapped": 10}, r"layers\[0\]\.overlapped: found 10; allowed: 5, .* to 9, the two in turn"),
        ({"overlapped": 7, "frozen": True}, r"layers\.overlapped: found with a frozen layer; allowed: one of the two"),
    ],
)
def test_mistakes_name_the_layer_and_what_is_allowed(change: dict[str, object], line: str) -> None:
    layer = {"name": "moe", "count": 4, "forward": 4, "backward": 3, "weight": 2}
    with pytest.raises(BadInput, match=line):
        plan_problem_from(document(layers=[layer | change]))


def test_blocks_refuse_what_has_passes_of_its_own() -> None:
    for keys in (
        {"transfer": {"time": 1, "on": "comm"}},
        {"sequence_chunks": 2},
        {"vocabulary": "shared"},
        {"parameters": {"step": {}}, "objective": "iteration"},
    ):
        with pytest.raises(BadInput, match=r"overlapped"):
            plan_problem_from(document(**keys))


@pytest.mark.parametrize("seed", daily([0, 2, 3, 8, 14], 2))
def test_bound_and_plan_against_every_partition_and_order(seed: int) -> None:
    random = Random(seed)
    plan = overlapping(random, tiny_plan(random))
    assert plan.model.overlaps
    assert attack(on_unequal_devices(random, plan) if seed % 3 == 2 else plan).wrong == ""


@pytest.mark.parametrize(
    ("name", "choice", "devices", "microbatches"),
    [
        ("1f1b-overlap", Choice("linear", 1), 3, 5),
        ("interleaved-1f1b-overlap", Choice("interleaved", 2), 2, 4),
        ("dualpipe", Choice("bidirectional", 2), 2, 4),
        ("dualpipe-v", Choice("v-shape", 2), 2, 4),
    ],
)
@pytest.mark.parametrize("seed", daily(range(4), 2))
def test_the_best_cut_of_an_order_with_blocks_is_proved(
    name: str, choice: Choice, devices: int, microbatches: int, seed: int
) -> None:
    """Its longest paths go through blocks, whose time depends on the layers of two stages."""
    random = Random(f"{name} {seed}")
    layers = [
        {
            "name": f"k{n}",
            "count": random.randint(1, 3),
            "forward": (forward := random.randint(1, 5)),
            "backward": (backward := random.randint(1, 5)),
            "weight": (weight := random.randint(0, 3)),
            "overlapped": random.randint(max(forward, backward + weight), forward + backward + weight),
        }
        for n in range(3)
    ]
    layers[2]["count"] = 3
    plan = plan_problem_from(
        {"devices": devices, "microbatches": microbatches, "layers": layers, "placement": choice.placement,
         "chunks": choice.chunks, "transfer": random.choice((0, 1))}
    )  # fmt: skip
    total, stages = len(plan.model.sequence), len(choice.on(devices).chains[0])
    order = schedule_named(name).order
    values = {}
    for cuts in combinations(range(1, total), stages - 1):
        partition = Partition(tuple(b - a for a, b in pairwise((0, *cuts, total))))
        problem = plan.problem(choice, partition)
        timeline = simulate(problem, order(problem))
        values[partition] = max(timeline.end(p) for p in timeline.schedule.passes())
        used = any(timeline.in_block(slot[0]) for own in timeline.schedule.orders for slot in own)
        assert used
    first = next(iter(values))
    search = FixedOrder(plan, choice, order(plan.problem(choice, first)))
    search.run(Budget(Limits(deterministic=20.0, workers=1), Event()), 20.0, lambda _: True, first)
    assert search.proved and search.best is not None
    assert search.best.value == min(values.values()) * plan.tick
