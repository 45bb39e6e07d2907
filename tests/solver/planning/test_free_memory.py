"""Plans of most free memory: against all partitions, the check of the amount, and what the objective refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from commands.main import main
from pipesched.checking.finding import Verdict
from pipesched.checking.free_memory import check_most_free
from pipesched.checking.plan_check import weakest
from pipesched.errors import BadInput
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.free_memory import holds_cache, reserving, reserving_more
from pipesched.layers.plan_problem import Leaves
from pipesched.problem.problem import Objective
from pipesched.results.free_memory import free_memory
from pipesched.results.solution import Status
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plan_brute_force import best_value, partitions, tiny_plan


def _plan(**more):
    layers = [
        {"name": "embedding", "forward": 2, "backward": 0, "memory": 4},
        {"name": "layer", "count": 9, "forward": 3, "backward": 0, "memory": "3/2"},
        {"name": "head", "forward": 7, "backward": 0, "memory": 4},
    ]
    document = {"devices": 3, "microbatches": 6, "layers": layers, "placement": "linear", "memory": {"capacity": 12}}
    return plan_problem_from(document | {"objective": "free_memory"} | more)


def _most(problem):
    """The most free memory of all partitions: one micro-batch at a time, summed over layers; None if nothing fits."""
    found = []
    for choice in problem.choices:
        stages_of = choice.on(problem.cluster.devices).stages_of
        for partition in partitions(problem, choice):
            held = partition.layers_of(problem.model)
            own = problem.problem(choice, partition)
            left = []
            for device, on in enumerate(stages_of):
                layers = [layer for stage in on for layer in held[stage % len(held)]]
                needs = sum(layer.memory for layer in layers)
                needs += sum(own.network.memory_in_flight[stage] for stage in on) * own.resolution
                share = sum(map(holds_cache, layers)) if problem.leaves is Leaves.PER_LAYER else 1
                left.append((problem.cluster.capacity[device] - needs, share))
            if min(left)[0] >= 0:
                shared = [amount / share for amount, share in left if share]
                found += [min(shared)]
    return max(found, default=None)


def _drawn(seed, leaves):
    problem = tiny_plan(Random(seed))
    layers = [replace(one, name=f"head{one.name}") for one in problem.model.layers]
    if leaves is Leaves.PER_LAYER:
        # Embeddings and heads hold no keys and values.
        layers[0] = replace(layers[0], name="embedding")
        layers[-1] = replace(layers[-1], name="head")
    problem = replace(problem, model=replace(problem.model, layers=tuple(layers)), objective=Objective.MAKESPAN)
    capacity = problem.cluster.capacity or (Fraction(12),) * problem.cluster.devices
    return replace(problem, cluster=replace(problem.cluster, capacity=capacity), leaves=leaves)


def test_the_most_and_then_the_least_time():
    problem = _plan(then="period")
    found = plan(problem, counted(4))
    # Embedding and 2 layers take 7, as do 2 layers and the head; 5 in between 7.5.
    assert (found.free.value, found.free.bound) == (Fraction(9, 2), Fraction(9, 2))
    assert found.best.partition.counts == (3, 5, 3)
    assert (found.status, found.value) == (Status.OPTIMAL, 15)
    per_layer = plan(_plan(objective="free_memory_per_layer"), counted(4))
    # Of those 5 layers have 0.9 each. 3 layers at both ends have 3.5 / 3 each, and no cut gives each layer more.
    assert per_layer.free.value == per_layer.free.bound == Fraction(7, 6)
    assert per_layer.best.partition.counts in ((4, 3, 4), (4, 4, 3), (3, 4, 4))


@pytest.mark.parametrize("leaves", [*Leaves])
@pytest.mark.parametrize("seed", daily(range(20), 20))
def test_against_every_partition(seed, leaves):
    problem = _drawn(seed, leaves)
    if leaves is Leaves.PER_LAYER and not any(map(holds_cache, problem.model.layers)):
        return
    most, found = _most(problem), plan(problem, counted(4))
    if most is None:
        assert found.status is Status.INFEASIBLE
        return
    assert found.free.value == found.free.bound == most
    own = found.best
    assert free_memory(problem, own.choice, own.partition, own.timeline) == most
    assert weakest(check_most_free(problem, most)) is Verdict.VERIFIED
    assert weakest(check_most_free(problem, most - problem.resolution / 12)) is Verdict.NOT_VERIFIED
    # Of the plans that leave as much it is the best by time, and none leaves a little more.
    within = reserving(problem, most)
    assert found.lower_bound <= min(one for one in best_value(within).values() if one is not None) <= found.value
    assert all(one is None for one in best_value(reserving_more(problem, most)).values())


@pytest.mark.usefixtures("pictures_are_empty", "cells_in_turn")
def test_commands(tmp_path, capsys):
    document = plan_document(_plan(objective="free_memory_per_layer", then="period"))
    assert plan_from_document(document, "again") == _plan(objective="free_memory_per_layer", then="period")
    path, out = tmp_path / "plan.yaml", tmp_path / "out"
    path.write_text(
        "{devices: 3, microbatches: 6, placement: linear, memory: {capacity: 12}, objective: free_memory, then: period,"
        " layers: [{name: layer, count: 9, forward: 3, backward: 0, memory: 2}]}"
    )
    assert main(["plan", str(path), "-o", str(out), "--time-limit", "20", "--for", "vllm"]) == 0
    said = capsys.readouterr().out
    assert "free memory: 6 activations on every device at least; no plan leaves more" in said.replace(
        "GiB", "activations"
    )
    assert main(["check", str(out / "plan.json")]) == 0
    said = capsys.readouterr().out
    assert "verified: linear: no plan leaves more than 6" in said
    assert "so it is optimal" in said
    answer = json.loads((out / "plan.json").read_text())
    for key, value in (("value", "7"), ("upper_bound", "5")):
        forged = answer | {"free_memory": answer["free_memory"] | {key: value}}
        (out / "forged.json").write_text(json.dumps(forged))
        assert main(["check", str(out / "forged.json")]) == 1
    assert main(["check", str(out / "plan.json"), "--again"]) == 0
    capsys.readouterr()
    assert main(["plan", str(path), "--json", "--time-limit", "20"]) == 0
    assert json.loads(capsys.readouterr().out)["free_memory"] == {
        "value": 6, "upper_bound": 6, "per_layer": False, "proved": True
    }  # fmt: skip
    assert main(["compare", str(path)]) == 2
    words = ["sweep", str(path), "--set", "microbatches=2,4", "-o", str(tmp_path / "sweep"), "--json"]
    assert main([*words, "--time-limit", "10"]) == 0
    assert [one["free_memory"]["value"] for one in json.loads(capsys.readouterr().out)["cells"]] == [6, 6]
    assert main(["check", str(tmp_path / "sweep")]) == 0
    assert main(["plan", str(path), "--explain"]) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"memory": None},
        {"schedule": "1f1b"},
        {"sequence_chunks": 2},
        {"vocabulary": "shared"},
        {"encoder": {"placement": "first-stage", "forward": 1, "backward": 0}},
        {"parameters": {"step": {"time": 1}}},
        {"objective": "free_memory_per_layer", "layers": [{"name": "head", "count": 4, "forward": 1, "backward": 0}]},
        {"objective": "makespan", "then": "period"},
    ],
)
def test_refused(more):
    with pytest.raises(BadInput, match="objective"):
        _plan(**more)
