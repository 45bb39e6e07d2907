"""The norm of all gradients in plans: problems of partitions, every partition and order of tiny plans, settings."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from threading import Event
from typing import Any

import pytest

from benchmarks.proofs.plan_attack import attack
from heuristics.catalogue import HEURISTICS
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import check_plan_bound
from pipesched.errors import BadInput
from pipesched.files.plan_answers.problem_document import plan_document, plan_from_document
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.layers.gradient_norm import GradientNorm
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.gradient_norm import norm_of, without_norm
from pipesched.problem.passes import NORM, Pass, Task
from pipesched.results.plan import PlanCandidate
from pipesched.simulation.simulator import simulate
from runtime.partitions.catalogue import PARTITION_FORMATS
from runtime.partitions.plan_settings import notes_on
from solver.planning.budget import Budget
from solver.planning.partitions.master import Master
from solver.planning.plan import plan
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.plan_brute_force import best_value, partitions, with_parameters

_LAYER = {"name": "layer", "count": 3, "forward": 1, "backward": 2, "activation": 1, "reduce": 3, "step": 1}
_ENCODER = {"forward": 1, "backward": 1, "reduce": 1, "placement": "own-device"}
_PARAMETERS: dict[str, Any] = {"reduce": {}, "norm": {"time": 2, "on": "norms"}, "step": {}}


def _given(**changes: Any) -> PlanProblem:
    base = {"devices": 2, "microbatches": 2, "chunks": 1, "layers": [_LAYER], "parameters": _PARAMETERS}
    return plan_problem_from(base | {"objective": "iteration"} | changes)


def _with_norm(random: Random) -> PlanProblem:
    """A tiny plan whose stages step, with a norm; so few passes that all orders can be tried."""
    while True:
        one = with_parameters(random)
        if one.model.parameters.step is not None:
            stream = random.choice(("dp", "compute", "norms"))
            return replace(one, additions=(GradientNorm(stream, random.randint(1, 3) * one.tick),))


@pytest.mark.parametrize(
    ("changes", "devices"),
    [
        ({}, 2),
        ({"sequence_chunks": 2}, 2),
        ({"layers": [{"name": "embedding", "forward": 0, "backward": 0}, _LAYER], "vocabulary": "shared"}, 2),
        ({"devices": 3, "encoder": _ENCODER}, 3),
        ({"layers": [_LAYER | {"name": "first", "count": 1, "frozen": True}, _LAYER], "partition": [1, 3]}, 1),
    ],
)
def test_one_norm_of_all_devices_that_train(changes: dict[str, Any], devices: int) -> None:
    one = _given(**changes)
    choice = one.choices[0]
    problem = one.problem(choice, next(partitions(one, choice)))
    (owner,) = (stage for stage, own in enumerate(problem.stages) if NORM in own.kinds_once)
    assert len(problem.devices_of(Task(Pass(NORM, owner, 0)))) == devices
    norm = norm_of(problem)
    assert norm is not None and (norm.stream, norm.ticks * problem.tick) == ("norms", 2)
    # The same as of a problem file with this section, whose reader lowers it by itself.
    document = problem_document(problem)
    assert problem_document(problem_from(document)) == document
    assert replace(one, additions=one.additions[::-1]).problem(choice, next(partitions(one, choice))) == problem
    plain = replace(one, additions=tuple(own for own in one.additions if not isinstance(own, GradientNorm)))
    assert without_norm(problem) == plain.problem(choice, next(partitions(plain, choice)))
    again = plan_from_document(plan_document(one), "")
    assert again == one and plan_document(again)["parameters"]["norm"] == {"time": "2", "on": "norms"}  # type: ignore[index]


def _least(one: PlanProblem) -> Fraction:
    """The bound over all partitions of the only placement, in the file's unit."""
    bound = Master(one, one.choices[0]).cheapest(Budget(counted(2), Event()), 2).bound
    assert bound is not None
    return bound * one.tick


@pytest.mark.parametrize("step", [(9, 1), (1, 9)])
def test_rows_of_partitions_count_the_norm_and_the_longest_step(step: tuple[int, int]) -> None:
    """Two micro-batches on two stages of F 1 and B 2 take 9; then a reduction, the norm, and the longer step of the two."""
    layers = [_LAYER | {"name": f"l{n}", "count": 1, "step": ticks} for n, ticks in enumerate(step)]
    one = _given(layers=layers, microbatches=2)
    assert _least(one) == min(value for value in best_value(one).values() if value is not None) == 9 + 3 + 2 + 9
    assert _least(replace(one, additions=())) < _least(one)


@pytest.mark.parametrize("frozen", [False, True])
def test_rows_of_partitions_hold_with_an_encoder_and_frozen_layers(frozen: bool) -> None:
    raised = 0
    for seed in daily(range(24), 3):
        random = Random(seed)

        def costs(name: str, random: Random = random) -> dict[str, Any]:
            keys = {"forward": (0, 3), "backward": (1, 4), "reduce": (0, 4), "step": (0, 6)}
            return {"name": name} | {key: random.randint(*ends) for key, ends in keys.items()}

        layers = [costs("a") | {"count": 2}]
        more: dict[str, Any] = {
            "encoder": costs("vision") | {"placement": "own-device", "frozen": random.random() < 0.4}
        }
        if frozen:
            layers, more = [costs("frozen") | {"frozen": True}, *layers], {}
        one = _given(microbatches=1, layers=layers, **more)
        best = min(value for value in best_value(one).values() if value is not None)
        assert _least(one) <= best
        raised += _least(one) > _least(replace(one, additions=tuple(
            own for own in one.additions if not isinstance(own, GradientNorm)
        )))  # fmt: skip
    assert raised


def test_rows_of_partitions_have_no_norm_where_nothing_trains() -> None:
    one = _given(layers=[_LAYER | {"frozen": True}])
    assert _least(one) == _least(replace(one, additions=())) <= plan(one, counted(2)).value


@pytest.mark.parametrize("seed", daily(range(8), 2))
def test_a_plan_is_the_best_of_all_partitions_and_orders(seed: int) -> None:
    assert attack(_with_norm(Random(seed))).wrong == ""


def test_bounds_over_partitions_hold() -> None:
    """They count the norm, and behind it the longest step."""
    delayed = 0
    for seed in daily(range(12), 6):
        one = _with_norm(Random(seed))
        best, plain = (
            min((value for value in best_value(each).values() if value is not None), default=None)
            for each in (one, replace(one, additions=()))
        )
        if best is None or plain is None:
            assert best is plain
            continue
        assert plain <= best
        delayed += plain < best
        found = plan(one, counted(4))
        assert found.lower_bound <= best
        assert _least(replace(one, additions=())) <= _least(one) <= best
        findings = check_plan_bound(one, best + one.tick, found.choices, found.variants)
        assert Verdict.VERIFIED not in {finding.verdict for finding in findings}
    assert delayed > 0


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("name", ["1f1b", "gpipe"])
def test_a_published_order_has_its_best_partition(name: str, overlap: bool) -> None:
    """The critical path of an order may lead through the norm, and is then no row over stage costs."""
    uneven = [_LAYER | {"name": f"l{n}", "count": 1, "reduce": n, "forward": 1 + n % 2} for n in range(4)]
    one = _given(schedule=name, layers=uneven, overlap_next=overlap)
    (choice,) = one.choices
    order = next(heuristic for heuristic in HEURISTICS if heuristic.name == name)
    problems = {partition: one.problem(choice, partition) for partition in partitions(one, choice)}
    best = min(
        PlanCandidate(choice, partition, simulate(problem, order.order(problem)), name).value
        for partition, problem in problems.items()
    )
    found = plan(one, counted(10))
    assert found.value == best and found.lower_bound <= best


def test_settings_say_that_the_job_must_clip() -> None:
    (note,) = notes_on(PARTITION_FORMATS["megatron"], _given())
    assert note.startswith("megatron: in the plan every step waits for the norm of all gradients")
    assert notes_on(PARTITION_FORMATS["megatron"], _given(parameters={"reduce": {}, "step": {}})) == ()


@pytest.mark.parametrize(
    ("parameters", "mistake"),
    [
        ({"reduce": {}, "norm": {"time": 1}}, "parameters.norm: found without parameters.step; allowed: with it"),
        (_PARAMETERS | {"norm": {"on": "dp"}}, "parameters.norm.time: missing"),
        (_PARAMETERS | {"norm": {"time": [1]}}, "parameters.norm.time: found [1]; allowed: a number"),
        (_PARAMETERS | {"norm": {"time": 1, "buckets": 2}}, "parameters.norm.buckets"),
    ],
)
def test_mistakes_are_one_line_each(parameters: dict[str, Any], mistake: str) -> None:
    layer = {key: value for key, value in _LAYER.items() if key != "step"}
    with pytest.raises(BadInput) as error:
        _given(parameters=parameters, layers=[layer])
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]


def test_times_have_units() -> None:
    one = _given(time_unit="ms", parameters=_PARAMETERS | {"norm": {"time": "500 us"}})
    assert GradientNorm("dp", Fraction(1, 2)) in one.additions
