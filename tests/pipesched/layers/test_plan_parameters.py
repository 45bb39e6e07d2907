"""Gathering, reduction and steps in plans: sums of layers, every partition and order of tiny plans, checks, mistakes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.proofs.plan_attack import attack
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import check_plan_bound
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, write_json
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from, read_document
from pipesched.files.problems.document import problem_document
from pipesched.layers.partition import Partition
from pipesched.problem.passes import REDUCE, STEP
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.nameless import nameless
from tests.support.plan_brute_force import best_value, with_parameters

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "plans"
LAYER = {"name": "layer", "count": 4, "forward": 1, "backward": 2, "activation": 1, "memory": 1}
OWN = {"gather": 1, "gathered": 2, "reduce": 3, "step": 0.5}
ALL = {"gather": {"on": "ag", "memory": 0.5, "keep": {"window": 1}}, "reduce": {"time": 2}, "step": {"time": 0.25}}


def given(**changes: Any) -> Any:
    base = {"devices": 2, "microbatches": 4, "chunks": 1, "layers": [LAYER | OWN], "memory": {"capacity": 24}}
    return plan_problem_from(base | {"parameters": ALL, "objective": "iteration"} | changes)


@pytest.mark.parametrize("pieces", [1, 2])
def test_stages_run_the_sums_of_their_layers_and_what_each_adds(pieces: int) -> None:
    one = given(**({"sequence_chunks": pieces} if pieces > 1 else {}), decide={"recompute": "never"})
    problem = one.problem(one.choices[0], Partition((3, 1)))
    again = problem_document(problem)
    assert again["parameters"] == {
        "gather": {"time": [3, 1], "on": "ag", "memory": [6.5, 2.5], "keep": {"window": 1}},
        "reduce": {"time": [11, 5], "on": "dp"},
        "step": {"time": [1.75, 0.75]},
    }
    assert again["objective"] == "iteration"
    # Before each forward and backward of a piece, and what it computes for the weights.
    assert {stage.gather.most for stage in problem.stages if stage.gather} == {3 * 4 * pieces}
    assert problem_document(problem_from(again, "")) == again
    for held in (one, given(overlap_next=True), given(parameters=ALL | {"gather": {"keep": "always"}})):
        known = plan_from_document(read_json(write_json(plan_document(held)), ""), "")
        made = [nameless(each.problem(held.choices[0], Partition((3, 1)))) for each in (known, held)]
        assert made[0] == made[1]


def test_a_slower_device_steps_slower_and_reduces_as_fast() -> None:
    classes = [{"devices": 1, "speed": 0.5, "memory": 24}, {"devices": 1, "memory": 24}]
    one = plan_problem_from(
        {"cluster": classes, "microbatches": 4, "chunks": 1, "layers": [LAYER | OWN]}
        | {"parameters": ALL, "objective": "iteration"}
    )
    stages = one.problem(one.choices[0], Partition((2, 2))).stages
    steps, reductions = ([each for own in stages for each in own.once if each.kind is kind] for kind in (STEP, REDUCE))
    assert [each.task.ticks * one.tick for each in steps] == [2.5, 1.25]
    assert len(reductions) == 2 and len(set(reductions)) == len({stage.gather for stage in stages}) == 1


# Gathered once, often or in a window; reduced and stepped; slow devices; iterations that overlap.
@pytest.mark.parametrize("seed", [0, 2, 8, 22])
def test_plan_is_the_best_of_all_partitions_and_orders(seed: int) -> None:
    assert attack(with_parameters(Random(seed))).wrong == ""


def test_the_bound_and_its_evidence_hold_of_the_best_plan() -> None:
    one = with_parameters(Random(5))
    found, best = plan(one, counted(8)), min(v for v in best_value(one).values() if v)
    assert found.value == found.lower_bound == best
    findings = check_plan_bound(one, best, found.choices)
    assert {finding.verdict for finding in findings} <= {Verdict.VERIFIED, Verdict.TRUSTED}
    assert Verdict.REFUSED in {finding.verdict for finding in check_plan_bound(one, best + 1, found.choices)}


def test_reductions_of_a_model_are_part_of_its_iteration_and_not_on_top() -> None:
    shape: Any = read_document(EXAMPLES / "llama3-70b-80gb.yaml")
    shape["hardware"]["data_bandwidth"] = 50
    plain = plan_problem_from(shape)
    own = plan_problem_from(shape | {"parameters": {"reduce": {}}, "objective": "iteration"})
    assert plain.step is not None and own.step is not None
    assert {one.name: one.reduce > 0 for one in own.model.layers} == dict.fromkeys(plain.step.reduction, True)
    assert not own.step.reduction and not any(one.reduce for one in plain.model.layers)
    del shape["hardware"]["data_bandwidth"]
    with pytest.raises(BadInput, match=r"parameters\.reduce: found with model without"):
        plan_problem_from(shape | {"parameters": {"reduce": {}}, "objective": "iteration"})


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"objective": "makespan"}, "objective: found makespan with parameters; allowed: iteration"),
        ({"parameters": None, "layers": [LAYER]}, "objective: found iteration without parameters"),
        ({"parameters": {}, "layers": [LAYER]}, "parameters: found none of gather, reduce and step"),
        ({"parameters": {"reduce": {"time": [1, 2]}, **{k: ALL[k] for k in ("gather", "step")}}}, "reduce.time: found"),
        ({"parameters": {"reduce": {}}, "layers": [LAYER | {"gathered": 1}]}, "layers[0].gathered: found without"),
        ({"parameters": ALL | {"gather": {"most": 1}}}, "parameters.gather.most: found 1; allowed: at least 2"),
        ({"parameters": ALL | {"gather": {"most": 4, "keep": "always"}}}, "found 4 with keep always"),
        (
            {"encoder": {"forward": 1, "backward": 1, "step": 1}, "parameters": {"reduce": {}}, "layers": [LAYER]},
            "encoder.step: found without parameters.step",
        ),
    ],
)
def test_mistakes_are_one_line_each(changes: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        given(**changes)
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]
