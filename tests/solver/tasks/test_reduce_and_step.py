"""Reductions and steps of stages: bounds, published schedules, pieces, copies, the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from, read_document, with_objective
from pipesched.files.problems.document import problem_document
from pipesched.problem.passes import BW, REDUCE, STEP, Pass, Task, W
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.idle_causes import IdleCause, idle_times
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from runtime.exporters.catalogue import EXPORTERS
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.nameless import nameless

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SURE = counted(20)
BOTH: dict[str, Any] = {"parameters": {"reduce": {"time": 8}, "step": {"time": 3}}, "objective": "iteration"}
TIMES = {"forward": 4, "backward": 4, "weight": 3, "transfer": 1}


def test_the_next_iteration_begins_on_each_device_when_its_own_steps_have_ended() -> None:
    times = {"forward": 2, "backward": 2, "weight": 2}
    whole, overlapped = (
        solve(problem(2, 3, times=times, overlap_next=overlap, **BOTH), SURE) for overlap in (False, True)
    )
    assert (whole.status, whole.value) == (Status.OPTIMAL, 31)
    assert (overlapped.status, overlapped.value) == (Status.OPTIMAL, 29)
    assert overlapped.certificate is not None
    assert check_bound(overlapped.problem, overlapped.certificate).verdict is not Verdict.REFUSED
    assert problem_document(overlapped.problem)["overlap_next"] is True


def in_buckets(number: int) -> Problem:
    document: Any = read_document(EXAMPLES / "gradient-buckets.yaml")
    document["parameters"]["reduce"]["buckets"] = number
    return problem_from(document, "")


def test_a_bucket_begins_when_its_share_of_the_weights_is_there() -> None:
    answers = {number: solve(in_buckets(number), SURE) for number in (1, 2, 4)}
    assert {number: answer.value for number, answer in answers.items()} == {1: 65.5, 2: 59.5, 4: 56.5}
    one, found = in_buckets(2), answers[2].timeline
    assert nameless(problem_from(problem_document(one), "")) == nameless(one)
    assert found is not None and validate(found) == []
    starts, tick = dict(found.starts), int(1 / one.tick)
    ready = {part: max(starts[t] for t in starts if t.of.kind in (W, BW) and t.of.stage == 1 and t.part == part)
             for part in (1, 3)}  # fmt: skip
    first = Task(Pass(REDUCE, 1, 0))
    assert any(starts[first] < starts[t] for t in starts if t.of.kind in (W, BW) and t.of.stage == 1)
    # Of a W the first two of four tasks, of a BW the first four of eight.
    parts = {p: range(2) if p.kind is W else range(4) for p in found.schedule.passes() if p.kind in (W, BW)}
    last = max(starts[Task(p, n)] + tick for p, own in parts.items() if p.stage == 1 for n in own)
    assert last <= starts[first]
    assert ready[1] < ready[3]
    for early in (last - 1, 0):
        assert {v.rule for v in validate(Timeline(one, found.schedule, starts | {first: early}))} >= {"precedence"}
    late = starts | {Task(Pass(REDUCE, 1, 1)): starts[first]}
    assert {v.rule for v in validate(Timeline(one, found.schedule, late))} >= {"precedence"}
    assert EXPORTERS["torch-csv-comms"].lacks(found) is not None and EXPORTERS["program"].lacks(found) is None


def test_what_follows_the_last_backward_is_part_of_every_bound() -> None:
    one = problem(4, 8, times=TIMES, memory={"capacity": 4}, **BOTH)
    found = solve(one, SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, 126)
    assert found.certificate is not None
    assert check_bound(one, found.certificate).verdict is Verdict.VERIFIED
    more = replace(found.certificate, value_ticks=found.certificate.value_ticks + 1)
    assert check_bound(one, more).verdict is Verdict.REFUSED


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "zb-h1"])
def test_published_schedules_run_both_behind_their_last_backward(name: str) -> None:
    one = problem(4, 8, times=TIMES, **BOTH)
    timeline = simulate(one, HEURISTICS[name].order(one))
    assert validate(timeline) == []
    plain = problem(4, 8, times=TIMES)
    before = measure(simulate(plain, HEURISTICS[name].order(plain)))
    assert measure(timeline).makespan_ticks == before.makespan_ticks + 11


def test_idle_time_that_waits_for_a_reduction_is_the_collectives() -> None:
    one = problem(2, 2, times={"forward": 1, "backward": 2}, **BOTH)
    causes = idle_times(simulate(one, HEURISTICS["1f1b"].order(one)))
    assert [idle[IdleCause.COLLECTIVE] for idle in causes.devices] == [8, 8]


def test_pieces_and_pipelines_reduce_once() -> None:
    pieces = problem(2, 2, times={"forward": 1, "backward": 2}, sequence_chunks=2, **BOTH)
    lost = {"count": 2, "lost": [[0, 0]]}
    pipelines = problem(2, 2, times={"forward": 1, "backward": 2}, pipelines=lost, **BOTH)
    for one, stages in ((pieces, 2), (pipelines, 3)):
        found = solve(one, SURE)
        assert found.timeline is not None and validate(found.timeline) == []
        ran = [p for p in found.timeline.schedule.passes() if p.kind is REDUCE]
        assert len(ran) == stages
        for p in ran:
            sharing = [s for s, holder in enumerate(one.parameters.holders) if holder == p.stage]
            backwards = [q for q in found.timeline.schedule.passes() if q.stage in sharing and q.kind.value == "BW"]
            assert len(backwards) == sum(len(one.microbatches_of[s]) for s in sharing) > 0
            assert found.timeline.start(p) >= max(map(found.timeline.end, backwards))
            assert found.timeline.start(Pass(STEP, p.stage, 0)) >= found.timeline.end(p)


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ({"parameters": {}}, "parameters: found none of"),
        ({"parameters": {"reduce": {}}}, "parameters.reduce.time: missing"),
        ({"parameters": {"step": {"time": -1}}}, "parameters.step.time: found -1"),
        ({"parameters": {"step": {"time": [1, 2, 3]}}}, "parameters.step.time: found 3 values"),
        ({"parameters": {"step": {"time": 1, "on": "dp"}}}, "parameters.step.on: unknown key"),
        ({"objective": "makespan"}, "objective: found makespan with parameters"),
        ({"parameters": None}, "objective: found iteration without parameters"),
        ({"objective": "span", "parameters": None, "overlap_next": True}, "overlap_next: found without parameters"),
        ({"microbatch_scale": [1, 2]}, "microbatch_scale: found with parameters"),
        ({"times": {"forward": 1, "backward": 2, "overlapped": 2}}, "times.overlapped: found with parameters"),
    ],
)
def test_mistakes_are_one_line_each(keys: dict[str, Any], mistake: str) -> None:
    with pytest.raises(BadInput) as error:
        problem(2, 2, **{"times": {"forward": 1, "backward": 2}} | BOTH | keys)
    assert len(error.value.mistakes) == 1 and mistake in error.value.mistakes[0]


def test_the_objective_goes_with_parameters() -> None:
    with pytest.raises(BadInput, match="objective: found span with parameters; allowed: iteration"):
        with_objective(problem(2, 2, times=TIMES, **BOTH), Objective.SPAN)
    with pytest.raises(BadInput, match="found iteration without parameters; allowed: makespan, span, period or free_"):
        with_objective(problem(2, 2, times=TIMES), Objective.ITERATION)
