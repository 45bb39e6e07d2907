"""Where an encoder is as a decision of a plan: the hand-written problems, the best of all four, the file's mistakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_json, write_json
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from, read_document, read_problem
from pipesched.files.problems.document import problem_document
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.with_fixed_modules import with_fixed_modules
from pipesched.problem.problem import Problem
from pipesched.results.plan_figures import device_memory, step_time, time_parts
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_limits import restricted
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.nameless import nameless
from tests.support.plan_brute_force import best_value

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
PLACES = ("first-stage", "own-device", "in-the-bubbles", "replicated")
LAYER = {"name": "layer", "count": 3, "forward": 1, "backward": 2, "activation": 1, "memory": 1}
TINY = {"devices": 2, "microbatches": 2, "layers": [LAYER], "chunks": 1, "transfer": 1, "memory": {"capacity": 9}}


def given(encoder: dict[str, Any] | None = None, **changes: Any) -> PlanProblem:
    own = {"count": 2, "forward": 1, "backward": 1, "activation": 0.5, "memory": 1} | (encoder or {})
    return plan_problem_from(TINY | {"encoder": own} | changes)


def test_one_addition_has_modules_and_no_trunk_gets_them_twice() -> None:
    """A second one would replace the arcs and the shares of the first."""
    both = given({"placement": "first-stage"})
    both = replace(both, additions=both.additions * 2)
    with pytest.raises(ValueError, match="found 2 additions with modules; allowed: one"):
        both.problem(both.choices[0], Partition((1, 2)))
    one = replace(both, additions=both.additions[:1])
    problem = one.problem(one.choices[0], Partition((1, 2)))
    with pytest.raises(ValueError, match="found a trunk of 2 chains; allowed: one, without arcs"):
        with_fixed_modules(problem, one)


def costs(problem: Problem) -> list[tuple[Any, ...]]:
    """What each stage takes and holds, in the file's units, and where it is; devices by what is on them."""
    return sorted(
        (
            stage.forward * problem.tick, stage.fused * problem.tick, stage.activation * problem.resolution,
            tuple(sorted(problem.placement.on_device_of(number))), problem.chain_arcs.modules[0].feeds, problem.chain_arcs.modules[0].serves,
        )
        for number, stage in enumerate(problem.stages)
    )  # fmt: skip


@pytest.mark.parametrize("where", PLACES)
def test_each_placement_is_the_problem_that_is_written_by_hand(where: str) -> None:
    document = read_document(EXAMPLES / "plans" / "vision-encoder.yaml")
    assert isinstance(document, dict)
    one = plan_problem_from(document | {"encoder": document["encoder"] | {"placement": where}})
    stages = one.cluster.devices
    problem = one.problem(one.choices[0], Partition((24 // stages,) * stages))
    assert costs(problem) == costs(read_problem(EXAMPLES / "modules" / f"{where}.yaml"))
    assert costs(problem_from(problem_document(problem), "")) == costs(problem)
    again = plan_from_document(read_json(write_json(plan_document(one)), ""), "")
    assert nameless(again.problem(one.choices[0], Partition((24 // stages,) * stages))) == nameless(problem)


def test_the_best_placement_is_found_as_by_trying_every_order_of_every_partition() -> None:
    free = given()
    best = {name: min(value for value in best_value(one).values() if value) for name, one in free.variants.items()}
    assert [*best] == [f"encoder {where}" for where in PLACES] and len(set(best.values())) > 1
    found = plan(free, counted(8))
    assert found.best is not None and validate(found.best.timeline) == []
    assert found.value == found.lower_bound == min(best.values())
    for one in found.variants:
        assert one.lower_bound is not None and one.lower_bound <= best[one.name]
        assert one.value is None or one.value >= best[one.name]


def test_the_figures_count_the_encoder_on_its_own_device() -> None:
    found = plan(given({"placement": "own-device"}), counted(4))
    assert found.best is not None
    timeline, held = found.best.timeline, device_memory(found.problem, found.best)
    peaks = measure(timeline).peak_memory
    assert [float(each.parameters + each.activations) for each in held] == peaks
    parts = time_parts(found.problem, found.best)
    assert parts.ideal == (2 * 9 + 2 * 4) / 2 and parts.bubble >= 0
    assert step_time(found.problem, found.best).total == found.value
    with pytest.raises(BadInput, match="--for torchtitan: found an encoder"):
        restricted(found.problem, "torchtitan", PARTITION_FORMATS["torchtitan"].limits)


@pytest.mark.parametrize(
    ("encoder", "changes", "mistake"),
    [
        ({"placement": "anywhere"}, {}, "encoder.placement: found"),
        ({"forward": None}, {}, "encoder.forward: missing"),
        ({"activation": 1, "freed_by_backward": 2}, {}, "encoder.freed_by_backward: found 2"),
        ({"serves": 3}, {"microbatches": 4}, "encoder.serves: found 3"),
        ({"serves": 2}, {}, "encoder.serves: found 1 passes"),
        ({}, {"memory": {"capacity": [9, 8]}}, "encoder.placement: found free with unequal devices"),
        ({"placement": "own-device"}, {"devices": 1}, "encoder.placement: found own-device with one device"),
        ({}, {"schedule": "1f1b"}, "schedule: found with encoder"),
        ({}, {"sequence_chunks": 2}, "sequence_chunks: found with encoder"),
        ({}, {"placement": "bidirectional", "chunks": 2}, "placement: found bidirectional with encoder"),
        ({}, {"vocabulary": "free", "layers": [LAYER, LAYER | {"name": "head"}]}, "vocabulary: found free"),
    ],
)
def test_mistakes_are_one_line_each(encoder: dict[str, Any], changes: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        given(encoder, **changes)
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]
