"""Published schedules on one model: they share the time limit, their plans and the bounds of all plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from random import Random
from threading import Event

import pytest

from formulations.partition.bound_rows import mean_load
from heuristics.catalogue import schedule_named
from pipesched.errors import DoesNotApply
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import Plan
from pipesched.results.plan_evidence import AllPartitions
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.planning import schedule_comparison, time_shares
from solver.planning.bounds_of_plans import with_bounds_of
from solver.planning.plan import plan
from solver.planning.progress import PlanProgress, Report
from solver.planning.schedule_comparison import COMPARED, FREE, compared_schedules
from solver.planning.search.fixed_order import FixedOrder
from tests.support.counted import counted
from tests.support.daily import daily

LIMITS = counted(4)
NAMES = ("1f1b", "gpipe", "zbv", "interleaved-1f1b")


def model(random: Random) -> PlanProblem:
    layer = {"name": "layer", "count": random.randint(4, 7), "activation": 1, "memory": 1}
    head = {"name": "head", "activation": 1}
    for one in (layer, head):
        one |= {"forward": random.randint(1, 4), "backward": random.randint(1, 4), "weight": random.randint(1, 4)}
    return plan_problem_from(
        {
            "devices": 2,
            "microbatches": random.randint(2, 4),
            "layers": [layer, head],
            "placement": "free",
            "memory": {"capacity": random.randint(9, 14)},
        }
    )


def published_values(problem: PlanProblem, name: str) -> Iterator[Fraction]:
    """Of all partitions on all placements that fit, each simulated."""
    layers = len(problem.model.sequence)
    for choice in problem.choices:
        stages = len(choice.on(problem.cluster.devices).chains[0])
        for cuts in combinations(range(1, layers), stages - 1):
            one = problem.problem(choice, Partition(tuple(b - a for a, b in pairwise((0, *cuts, layers)))))
            try:
                timeline = simulate(one, schedule_named(name).order(one))
            except DoesNotApply:
                continue
            if not validate(timeline):
                yield max(timeline.end(p) for p in timeline.schedule.passes()) * one.tick


@pytest.mark.parametrize("seed", daily((1, 2, 3), 3))
def test_no_bound_is_above_any_plan_of_its_schedule(seed: int) -> None:
    problem = model(Random(seed))
    rows = {
        row.name: row
        for row in compared_schedules(problem, {name: [name] for name in NAMES}, FREE, LIMITS, lambda _: None, Event())
    }
    free = rows[FREE].plan
    assert free is not None
    for name in NAMES:
        found, least = rows[name].plan, min(published_values(problem, name), default=None)
        if found is None or least is None:
            assert found is None or found.best is None
            continue
        assert found.best is not None and free.value is not None
        # What all plans cannot reach, none of these does; and their plans are plans.
        assert free.lower_bound <= found.lower_bound <= least <= found.best.value
        assert free.value <= found.best.value


def test_a_restricted_search_takes_the_bounds_of_a_wider_one() -> None:
    problem = model(Random(1))
    wide = plan(problem, counted(0.3))
    none = counted(0)
    narrow = plan(replace(problem, schedules=("zbv",)), none)
    both = with_bounds_of(narrow, wide)
    assert narrow.best is not None and narrow.lower_bound < wide.lower_bound
    v_shape = next(each for each in wide.choices if each.choice == narrow.best.choice)
    assert v_shape.lower_bound is not None
    assert both.lower_bound == min(v_shape.lower_bound, narrow.best.value)
    assert next(each for each in both.choices if each.choice == narrow.best.choice).evidence == v_shape.evidence
    assert with_bounds_of(wide, narrow) == wide


def test_all_plans_of_published_schedules_are_starts_and_their_time_ends_before_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A first plan of each, then those that fit again; one that takes too long leaves the others less of the limit."""
    asked, starts, clock = list[float](), list[object](), [0.0]

    def slow(one: PlanProblem, limits: Limits, report: Report, stop: Event) -> Plan:
        asked.append(limits.seconds)
        clock[0] += 2
        return plan(one, counted(0), report, stop)

    def begun(known: Sequence[object], one: PlanProblem, limits: Limits, report: Report, stop: Event) -> Plan:
        starts.extend(known)
        return slow(one, limits, report, stop)

    monkeypatch.setattr(time_shares, "monotonic", lambda: clock[0])
    monkeypatch.setattr(schedule_comparison, "plan", slow)
    monkeypatch.setattr(schedule_comparison, "plan_from", begun)
    problem = model(Random(1))
    orders = {name: [name] for name in ("1f1b", "gpipe", "zbv")}
    rows = compared_schedules(problem, orders, FREE, Limits(seconds=20), lambda _: None, Event())
    assert sorted(row.name for row in rows) == sorted([*orders, FREE])
    assert asked == pytest.approx([0, 0, 0, 3, 4, 10])
    best = [row.plan.best for row in rows if row.name != FREE and row.plan is not None and row.plan.best is not None]
    assert best and all(one in starts for one in best)


def test_published_orders_have_the_bound_of_any_order_where_their_own_is_not_there_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a search for one order leaves it that finds nothing in its time; every plan of its order is simulated."""
    monkeypatch.setattr(FixedOrder, "run", lambda _, budget, most, *__: budget.parameters(most))
    problem = model(Random(1))
    (linear,) = [choice for choice in problem.choices if choice.placement == "linear"]
    problem = replace(problem, choices=(linear,), schedules=("1f1b",))
    found = plan(problem, LIMITS)
    (result,) = found.choices
    assert result.lower_bound is not None and isinstance(result.evidence, AllPartitions)
    assert mean_load(problem, linear) * problem.tick < result.lower_bound
    assert result.lower_bound <= min(published_values(problem, "1f1b"))


def test_without_time_the_best_known_orders_come_first_and_the_others_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]

    def slow(one: PlanProblem, limits: Limits, report: Report, stop: Event) -> Plan:
        clock[0] += 10
        return plan(one, counted(0), report, stop)

    monkeypatch.setattr(time_shares, "monotonic", lambda: clock[0])
    monkeypatch.setattr(schedule_comparison, "plan", slow)
    orders = {name: [name] for name in ("zb", "1f1b", "gpipe")}
    moments: list[PlanProgress] = []
    rows = compared_schedules(model(Random(1)), orders, None, Limits(seconds=20), moments.append, Event())
    assert {row.name: row.plan is None for row in rows} == {"1f1b": False, "gpipe": False, "zb": True}
    (zb,) = (row for row in rows if row.name == "zb")
    assert zb.reason.startswith("not tried: no time was left") and zb.record()["status"] == "unknown"
    assert [one.phase for one in moments if "first plans" in one.phase] == ["1f1b: first plans", "gpipe: first plans"]
    every = compared_schedules(model(Random(1)), orders, None, Limits(seconds=20), moments.append, Event(), every=True)
    assert all(row.plan is not None for row in every)


@pytest.mark.parametrize("seed", (1, 2))
def test_no_schedule_is_worse_than_a_plan_of_it_alone_in_its_share(seed: int) -> None:
    problem, names = model(Random(seed)), ("1f1b", "zbv", "interleaved-1f1b")
    limits = counted(1)
    share = replace(limits, deterministic=COMPARED.until / len(names))
    for row in compared_schedules(problem, {name: [name] for name in names}, None, limits, lambda _: None, Event()):
        if row.plan is not None:
            alone = plan(replace(row.plan.problem, schedules=(row.name,)), share).value
            assert alone is None or (row.plan.value is not None and row.plan.value <= alone)


@pytest.mark.parametrize(
    "feature",
    [
        {"encoder": {"placement": "own-device", "count": 2, "forward": 1, "backward": 2, "activation": 1}},
        {"cluster": [{"devices": 1, "speed": 1}, {"devices": 1, "speed": 0.5}]},
        {"cluster": [{"devices": 2, "speed": 1}, {"devices": "0..2", "speed": 0.5}], "decide": {"cluster": "free"}},
        {"vocabulary": "free"},
        {"vocabulary": "shared"},
    ],
    ids=["encoder", "unequal devices", "devices left out", "free vocabulary", "shared vocabulary"],
)
def test_schedules_of_two_copies_of_each_stage_are_not_tried_where_none_can_run(feature: dict[str, object]) -> None:
    times = {"forward": 2, "backward": 2, "weight": 2, "activation": 1, "memory": 1}
    layers = [{"name": "embedding"} | times, {"name": "block", "count": 6} | times, {"name": "head"} | times]
    devices = {} if "cluster" in feature else {"devices": 2}
    problem = plan_problem_from({"microbatches": 4, "layers": layers, "placement": "linear", **devices, **feature})
    (row,) = compared_schedules(problem, {"chimera": ["chimera"]}, None, LIMITS, lambda _: None, Event())
    assert row.plan is None and row.reason.startswith("needs every stage on two devices")
