"""The vocabulary on all devices as a decision of a plan: the parts, the better of both, the file and its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import mean_load, partition_finding
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, write_json
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.validation.validator import validate
from solver.planning.plan import plan
from solver.planning.sensitivity import changed_problems
from tests.support.counted import counted
from tests.support.nameless import nameless

LAYERS: list[dict[str, Any]] = [
    {"name": "embedding", "forward": 0.5, "backward": 0.5, "weight": 0.5, "activation": 0.1, "memory": 1},
    {"name": "layer", "count": 2, "forward": 1, "backward": 1, "weight": 1, "activation": 0.5, "memory": 1},
    {"name": "head", "forward": 6, "backward": 3, "weight": 3, "activation": 0.2, "memory": 2, "with_previous": True},
]


def given(**changes: Any) -> PlanProblem:
    return plan_problem_from(
        {"devices": 2, "microbatches": 2, "layers": LAYERS, "chunks": 1, "transfer": 0.25,
         "memory": {"capacity": 20}} | changes
    )  # fmt: skip


def test_each_device_has_a_part_of_embedding_and_head() -> None:
    one = given(vocabulary="shared")
    problem = one.problem(one.choices[0], Partition((1, 1)))
    assert [(each.name, each.shared, each.barriers, each.feeds) for each in problem.chain_arcs.modules] == [
        ("embedding", True, 0, (0,)), ("head", True, 2, (1,)),
    ]  # fmt: skip
    head = problem.stages[-1]
    times = head.forward, head.backward, head.weight, head.fused, head.transfer
    assert [time * problem.tick for time in times if time is not None] == [3, 1.5, 1.5, 3, 0.25]
    assert (head.activation * problem.resolution * 10, problem.static[0] * problem.resolution) == (1, 2.5)
    again = plan_from_document(read_json(write_json(plan_document(one)), ""), "")
    assert nameless(again.problem(one.choices[0], Partition((1, 1)))) == nameless(problem)


@pytest.mark.parametrize("place", [0, -1])
def test_several_layers_of_an_end_are_shared_as_one_of_all_their_costs(place: int) -> None:
    """The problem of a plan had one of them alone, so that its value was of a smaller model."""
    own, problems = LAYERS[place], list[Problem]()
    numbers = {key: 2 * value for key, value in own.items() if isinstance(value, int | float) and value is not True}
    for several in (own | {"count": 2}, own | numbers):
        layers = [several if one is own else one for one in LAYERS]
        one = given(vocabulary="shared", layers=layers)
        problems.append(one.problem(one.choices[0], Partition((1, 1))))
        # Two micro-batches on two devices: the work of all stages is the mean load.
        work = (stage.forward + min(stage.backward + (stage.weight or 0), stage.fused) for stage in problems[-1].stages)
        assert mean_load(one, one.choices[0]) == sum(work) * one.tick
    assert nameless(problems[0]) == nameless(problems[1])


def test_the_better_of_one_device_and_all_is_found() -> None:
    work = counted(6)
    found = plan(given(vocabulary="free"), work)
    one, shared = (plan(given(vocabulary=way), work) for way in ("one", "shared"))
    assert found.best is not None and validate(found.best.timeline) == []
    assert one.value is not None and shared.value is not None and shared.value < one.value
    assert found.value == shared.value and found.lower_bound <= shared.value
    assert [each.name for each in found.variants] == ["vocabulary shared", "vocabulary one"]
    (result,) = shared.choices
    assert result.evidence is not None
    for solved in getattr(result.evidence, "solved", ()):
        finding = partition_finding(shared.problem, result.lower_bound or 0, result.choice, solved)
        assert finding.verdict in (Verdict.VERIFIED, Verdict.TRUSTED)
    assert "embedding and head in equal parts on all devices" in [
        change.text for change in changed_problems(one.problem)
    ]
    assert "embedding and head in equal parts on all devices, in any order" in [
        change.text for change in changed_problems(given(schedule="1f1b"))
    ]
    # Where the file leaves it open already, it is no change.
    assert not any("in equal parts" in change.text for change in changed_problems(given(vocabulary="free")))
    both = changed_problems(given(chunks=[1, 2], placement=["linear", "bidirectional"]))
    (shared_by_all,) = [change.problem for change in both if "in equal parts" in change.text]
    assert {choice.placement for choice in shared_by_all.choices} == {"linear"}


def test_what_sharing_would_bring_is_asked_of_every_number_of_devices() -> None:
    """Parts were in units for all devices, so that plans with fewer could not be built."""
    open_cluster = [{"devices": 2, "speed": 1}, {"devices": "0..2", "speed": 0.5}]
    layers = [LAYERS[0], LAYERS[1] | {"count": 6}, LAYERS[2]]
    one = plan_problem_from({"cluster": open_cluster, "microbatches": 2, "layers": layers, "chunks": 1})
    (shared,) = [change.problem for change in changed_problems(one) if "in equal parts" in change.text]
    assert [each.cluster.devices for each in shared.variants.values()] == [2, 3, 4]
    for each in shared.variants.values():
        problem = each.problem(each.choices[0], Partition((1,) * (each.cluster.devices - 1) + (2,)))
        heads = [problem.stages[stage] for (stage,) in problem.chain_arcs.modules[1].chains]
        assert heads[0].forward * problem.tick * each.cluster.devices == 6


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"layers": LAYERS[1:2]}, "layers: found none but"),
        ({"placement": "bidirectional", "chunks": 2}, "placement: found bidirectional with vocabulary free"),
        ({"partition": [2, 2]}, "partition: found a list"),
        ({"transfer": {"time": 1, "on": "comm"}}, "transfer.on: found with vocabulary"),
        ({"sequence_chunks": {"count": 2}}, "sequence_chunks: found with vocabulary"),
        ({"vocabulary": "both"}, "vocabulary: found"),
    ],
)
def test_mistakes_are_one_line_each(changes: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        given(**({"vocabulary": "free"} | changes))
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]
