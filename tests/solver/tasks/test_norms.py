"""The norm of all gradients: solves against every order, files, published schedules and exports."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.problem.gradient_norm import norm_of
from pipesched.problem.passes import BW, NORM, REDUCE, STEP, Pass, Task, W
from pipesched.problem.problem import Problem
from pipesched.schedule.once_an_iteration import completed
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from runtime.execution.program import program_of
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.megatron import program_document
from solver.construction.timing import best_times
from solver.solve import solve
from tests.support.counted import counted
from tests.support.norm_problems import tiny_norms
from tests.support.piece_problems import compared
from tests.support.task_brute_force import TooManyOrdersError

_MODULE = {"placement": [1], "feeds": 0, "times": {"forward": 1, "backward": 1}}
_OWN = {"reduce": {"time": 1}, "step": {"time": 1}}


def _document(**keys: Any) -> dict[str, Any]:
    return {
        "devices": 2, "microbatches": 2, "times": {"forward": 2, "backward": 3, "transfer": 1},
        "parameters": {"reduce": {"time": 2}, "norm": {"time": 1}, "step": {"time": 1}}, "objective": "iteration",
    } | keys  # fmt: skip


def test_a_solve_proves_the_optimum_of_every_order() -> None:
    seen = 0
    for number in range(7):
        try:
            compared(tiny_norms(Random(number)))
            seen += 1
        except TooManyOrdersError:
            continue
    assert seen > 3


# By case: the keys, the stage that runs the norm, and the devices that it occupies.
_FILES: dict[str, tuple[dict[str, Any], int, list[int]]] = {
    "plain": ({}, 0, [0, 1]),
    "pieces": ({"sequence_chunks": 2}, 0, [0, 1]),
    "replicas": ({"pipelines": {"count": 2}}, 0, [0, 1, 2, 3]),
    "a lost worker": ({"pipelines": {"count": 2, "lost": [[0, 1]]}}, 0, [0, 1, 2]),
    "a frozen stage": ({"frozen": 1}, 1, [1]),
    "a module without parameters": ({"modules": {"vision": _MODULE}}, 0, [0, 1]),
    "a module": ({"modules": {"vision": _MODULE | {"parameters": _OWN}}}, 0, [0, 1]),
    "a head alone that trains": (
        {"frozen": 2, "modules": {"head": {"placement": "shared", "follows": 1, "barriers": 1,
                                           "times": {"forward": 1, "backward": 1}, "parameters": _OWN}}}, 2, [0, 1],
    ),
    "stages on both devices": ({"placement": "v-shape", "overlap_next": True}, 0, [0, 1]),
}  # fmt: skip


@pytest.mark.parametrize("case", _FILES)
def test_one_norm_of_all_devices_that_train_is_read_and_written(case: str) -> None:
    keys, owner, devices = _FILES[case]
    one = problem_from(_document(**keys))
    assert [stage for stage, own in enumerate(one.stages) if NORM in own.kinds_once] == [owner]
    assert sorted(one.devices_of(Task(Pass(NORM, owner, 0)))) == devices
    document = problem_document(one)
    assert document["parameters"]["norm"] == {"time": 1, "on": "dp"}
    again = problem_from(document)
    assert norm_of(again) == norm_of(one) and problem_document(again) == document


def test_no_norm_is_taken_where_nothing_trains() -> None:
    assert norm_of(problem_from(_document(frozen=2))) is None


@pytest.mark.parametrize("case", _FILES)
def test_it_follows_all_reductions_and_precedes_all_steps(case: str) -> None:
    keys, owner, _ = _FILES[case]
    one = problem_from(_document(**keys))
    timeline = solve(one, counted(3)).timeline
    assert timeline is not None and validate(timeline) == []
    norm, trained = Pass(NORM, owner, 0), one.parameters.trained(one.stages)
    for p in timeline.schedule.passes():
        if p.kind in (W, BW, REDUCE) and not one.stages[p.stage].forward_only:
            assert timeline.end(p) <= timeline.start(norm)
        elif p.kind is STEP and p.stage in trained:
            assert timeline.start(p) >= timeline.end(norm)


@pytest.mark.parametrize("moved", [Pass(STEP, 1, 0), Pass(NORM, 0, 0)])
def test_the_validator_refuses_a_norm_out_of_turn(moved: Pass) -> None:
    timeline = solve(problem_from(_document()), counted(3)).timeline
    assert timeline is not None
    starts = {**timeline.starts, Task(moved): timeline.start(Pass(REDUCE, 1, 0))}
    broken = validate(type(timeline)(timeline.problem, timeline.schedule, starts))
    assert any(violation.rule == "precedence" and moved in violation.passes for violation in broken)


@pytest.mark.parametrize("stream", ["dp", "compute"])
@pytest.mark.parametrize("reduce", ["dp", "compute", ""])
def test_published_schedules_take_the_norm_after_their_reductions(stream: str, reduce: str) -> None:
    parameters = {"norm": {"time": 1, "on": stream}, "step": {"time": 1}}
    parameters |= {"reduce": {"time": 2, "on": reduce}} if reduce else {}
    places: tuple[dict[str, Any], ...] = ({}, {"placement": "v-shape"}, {"placement": "interleaved", "chunks": 2})
    seen = 0
    for keys in places:
        times = {"forward": 2, "backward": 2, "weight": 1, "transfer": 1}
        one = problem_from(_document(microbatches=4, times=times, parameters=parameters, **keys))
        for heuristic in HEURISTICS:
            try:
                timeline = simulate(one, heuristic.order(one))
            except DoesNotApply as reason:
                assert "would hang" not in str(reason)
                continue
            assert [each for each in validate(timeline) if each.rule != "memory"] == []
            seen += 1
    assert seen > 10


def _exported(one: Problem) -> Any:
    schedule = next(heuristic for heuristic in HEURISTICS if heuristic.name == "1f1b").order(one)
    return best_times(one, completed(one, schedule))


@pytest.mark.parametrize("norm", [{}, {"norm": {"time": 1}}])
def test_megatron_reduces_takes_the_norm_and_steps_by_itself(norm: dict[str, Any]) -> None:
    """Modules with words that Megatron's executor does not know could not be loaded."""
    timeline = _exported(problem_from(_document(parameters=norm | _OWN)))
    kinds = {step.kind for row in program_of(program_document(timeline)).rows for step in row}
    assert kinds == {"F", "BW"}
    assert any("by itself" in note for note in EXPORTERS["megatron"].warnings(timeline))


def test_megatron_refuses_gatherings() -> None:
    timeline = _exported(problem_from(_document(parameters={"gather": {"time": 1}} | _OWN)))
    with pytest.raises(BadInput, match="gatherings"):
        EXPORTERS["megatron"].check(timeline)


def test_no_tensor_is_sent_for_the_norm() -> None:
    timeline = _exported(problem_from(_document()))
    (table,) = (
        text for suffix, text in EXPORTERS["torch-csv-comms"].export(timeline).items() if suffix.endswith(".csv")
    )
    assert table.count("SEND") == 4 and "REDUCE_GRAD" in table
    (program,) = EXPORTERS["program"].export(timeline).values()
    assert program.count('"do": "SEND"') == 4
    (trace,) = EXPORTERS["chrome-trace"].export(timeline).values()
    assert trace.count('"ph": "s"') == 4


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"reduce": {"time": 1}, "norm": {"time": 1}}, "parameters.norm: found without parameters.step"),
        ({"step": {"time": 1}, "norm": {"on": "dp"}}, "parameters.norm.time: missing"),
        ({"step": {"time": 1}, "norm": {"time": [1, 2]}}, r"parameters.norm.time: found \[1, 2\]; allowed: a number"),
    ],
)
def test_mistakes_are_a_line_each(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput, match=line):
        problem_from(_document(parameters=parameters))
