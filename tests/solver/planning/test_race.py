"""A race of plan problems against the plan of each by itself, and the time of a whole step."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from threading import Event
from typing import Any

import pytest

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.objective import objectives
from pipesched.problem.problem import Objective
from pipesched.results.plan import Plan
from pipesched.results.plan_figures import step_time
from pipesched.results.solution import Status
from pipesched.schedule.metrics import device_reach
from solver.limits import Limits
from solver.planning import time_shares
from solver.planning.plan import plan, plan_from
from solver.planning.race import NO_TIME, RaceEntry, raced
from targets.layout_race import LayoutRace
from tests.support.counted import counted

WORK = counted(20.0)
MODEL: dict[str, Any] = {
    "layers": 6, "hidden": 1024, "vocabulary": 32000, "attention": {"heads": 8}, "ffn": 4096, "sequence": 1024,
}  # fmt: skip
HARDWARE = {"sustained_tflops": 100, "memory": 40, "pipeline_bandwidth": 20, "tensor_bandwidth": 5}


def problem(devices: int, tensor: int, data: int, data_bandwidth: int | None = 10, memory: int = 40) -> PlanProblem:
    """Of 8 devices and 8 micro-batches in all."""
    shared = {"parallel": {"tensor": tensor, "data": data}}
    links = {} if data_bandwidth is None else {"data_bandwidth": data_bandwidth}
    return plan_problem_from({
        "devices": devices, "microbatches": 8 // data, "schedule": "1f1b", "placement": "linear",
        "model": MODEL | shared, "hardware": HARDWARE | links | {"memory": memory},
    })  # fmt: skip


def race(problems: dict[str, PlanProblem]) -> list[RaceEntry[str]]:
    return raced(plan_from, problems, WORK, lambda _: None, Event())


def test_the_best_of_all_is_found_and_what_is_dropped_is_no_better() -> None:
    sizes = {f"{t} {p} {d}": (p, t, d) for t in (1, 2, 4, 8) for p in (1, 2, 4) for d in (1, 2, 4) if t * p * d == 8}
    problems = {name: problem(*each) for name, each in sizes.items()}
    alone = {name: plan(each, WORK) for name, each in problems.items()}
    assert all(found.status is Status.OPTIMAL and found.best is not None for found in alone.values())
    steps = {name: step_time(found.problem, found.best).total for name, found in alone.items() if found.best}
    rows = race(problems)
    assert rows[0].key == min(steps, key=lambda name: steps[name])
    assert rows[0].step is not None and rows[0].step.total == steps[rows[0].key]
    assert all(row.bound <= row.least <= steps[row.key] for row in rows)
    dropped = [row for row in rows if row.dropped]
    assert dropped and all(steps[row.key] >= rows[0].step.total for row in dropped)
    shown = [row.step.total for row in rows if row.step is not None]
    assert shown == sorted(shown)


def test_counted_work_gives_the_same_answer_again() -> None:
    sizes = {f"{t} {p} {d}": (p, t, d) for t, p, d in ((1, 4, 2), (2, 2, 2), (1, 2, 4))}
    problems = {name: problem(*each) for name, each in sizes.items()}
    answers = [raced(plan_from, problems, counted(2.0), lambda _: None, Event()) for _ in "ab"]
    told = [[(row.key, row.bound, row.least, row.step, row.plan and row.plan.best) for row in rows] for rows in answers]
    assert told[0] == told[1] and told[0][0][-1] is not None


def test_parameters_that_do_not_fit_are_said_and_come_last() -> None:
    rows = race({"little": problem(2, 1, 1, memory=1), "ample": problem(2, 1, 1)})
    assert [row.key for row in rows] == ["ample", "little"]
    assert rows[1].step is None and "its parameters alone take 1" in rows[1].dropped


def test_what_has_had_no_turn_when_the_time_is_over_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least step by its bound comes first."""
    clock, found = [0.0], plan(problem(2, 1, 1), WORK)

    def slow(*_: object) -> Plan:
        clock[0] += 20
        return found

    monkeypatch.setattr(time_shares, "monotonic", lambda: clock[0])
    problems = {"short": problem(2, 1, 1), "deep": problem(8, 1, 1)}
    rows = raced(slow, problems, Limits(seconds=10), lambda _: None, Event())
    assert [row.key for row in rows] == ["deep", "short"]
    assert rows[1].step is None and rows[1].dropped == NO_TIME


@pytest.mark.meets_defects
def test_a_problem_whose_search_fails_still_lowers_the_bound_of_all() -> None:
    """A failure proves nothing, so that its bound counts, also where it is below the best step of the others."""

    def failing(starts: Any, one: PlanProblem, *more: Any) -> Plan:
        if one.cluster.devices == 8:
            raise ArithmeticError("of a test")
        return plan_from(starts, one, *more)

    problems = {"short": problem(2, 1, 1), "deep": problem(8, 1, 1)}
    rows = {row.key: row for row in raced(failing, problems, WORK, lambda _: None, Event())}
    failed, short = rows["deep"], rows["short"]
    assert failed.step is None and "of a test" in failed.dropped and failed.failed
    assert short.step is not None and failed.least < short.least
    assert LayoutRace([failed, short], {}, {}).least == failed.least  # type: ignore[list-item]


def test_a_variant_without_any_plan_says_nothing_of_one_that_may_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the rows has no plan at all; of another none was found in the time, with a bound."""
    document = {
        "devices": 2,
        "microbatches": 2,
        "placement": "linear",
        "layers": [{"name": "layer", "forward": 1, "backward": 2, "count": 4}],
    }
    classes = [{"devices": 1}, {"devices": "0..1", "speed": 1}]
    asked = plan_problem_from({key: own for key, own in document.items() if key != "devices"} | {"cluster": classes})
    ample = plan(plan_problem_from(document), WORK)
    assert ample.certificate is not None
    none = RaceEntry("none", ample.problem, Fraction(0), Fraction(0), replace(
        ample, best=None, certificate=None, status=Status.INFEASIBLE, reason="no memory"))  # fmt: skip
    open_one = RaceEntry("open", ample.problem, Fraction(5), Fraction(5), replace(
        ample, best=None, status=Status.UNKNOWN))  # fmt: skip
    monkeypatch.setattr("solver.planning.plan.raced", lambda *_: [none, open_one])
    found = plan_from([], asked, WORK, lambda _: None, Event())
    assert found.status is Status.UNKNOWN and found.lower_bound == 5
    open_one.plan = none.plan
    assert plan_from([], asked, WORK, lambda _: None, Event()).status is Status.INFEASIBLE


def test_a_step_ends_with_each_device_s_own_reduction() -> None:
    found = plan(problem(2, 1, 4), WORK)
    assert found.best is not None
    held, timeline = found.best.partition.layers_of(found.problem.model), found.best.timeline
    layer = 4 * 1024**2 + 3 * 1024 * 4096 + 2 * 1024
    parameters = {"embedding": 32000 * 1024, "layer": layer, "head": 32000 * 1024}
    # Gradients in 4 bytes there and weights in 2 back, all but a quarter of each, at 10 GB/s.
    own = [sum(parameters[one.name] for one in stage) * (4 + 2) * Fraction(3, 4) / 10**10 * 1000 for stage in held]
    tick, times = timeline.problem.tick, zip(timeline.schedule.columns.passes, timeline.times[1], strict=True)
    ends = [(one.stage, int(end) * tick) for one, end in times]
    expected = max(max(end for stage, end in ends if stage == at) + own[at] for at in (0, 1))
    time = step_time(found.problem, found.best)
    assert (time.pipeline, time.total) == (found.value, expected) and time.reduction > 0


def test_a_step_of_span_lets_each_device_begin_the_next_one() -> None:
    found = plan(problem(2, 1, 4, data_bandwidth=None), WORK)
    assert found.best is not None
    (first, last), tick = [device_reach(found.best.timeline, at) for at in (0, 1)], found.best.timeline.problem.tick
    assert first[0] == 0 < last[0]
    taken = {one: step_time(replace(found.problem, objective=one), found.best).pipeline for one in objectives()}
    assert taken[Objective.SPAN] == tick * max(first[1], last[1] - last[0])
    assert taken[Objective.MAKESPAN] == tick * max(first[1], last[1])


def test_without_a_bandwidth_or_replicas_a_step_is_its_pipeline() -> None:
    for one in (problem(2, 1, 4, data_bandwidth=None), problem(4, 2, 1)):
        found = plan(one, WORK)
        assert found.best is not None and step_time(one, found.best) == (found.value, 0, 0)
