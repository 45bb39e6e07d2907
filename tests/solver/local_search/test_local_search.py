"""Annealing: what comes out is a valid order of the same passes, never worse, and the same every time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedule, policies, sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.moves import fill, shift
from solver.local_search.units.order_units import Units
from tests.support.exhaustive.optimum import optimum
from tests.support.published import ROWS
from tests.support.tiny_problem import tiny_problem

HEAT = AnnealingRun(hot=1.0, cold=0.05, evenness=0.1, filling=0.2, reach=6)


def openings(timeline: Timeline) -> list[int]:
    """When each device begins what counts."""
    if timeline.problem.objective == Objective.MAKESPAN:
        return [0] * timeline.problem.devices
    passes = map(timeline.schedule.passes_on, range(timeline.problem.devices))
    return [min(map(timeline.start, held), default=0) for held in passes]


def start(problem: Problem) -> Timeline:
    """A list schedule that leaves something to gain: by the first policy that counts no forwards of the warm-up."""
    schedule = list_schedule(problem, next(policy for policy in policies(problem) if not policy.warm_up))
    return best_times(problem, schedule or sequential(problem))


def cases() -> list[Problem]:
    found = []
    for seed in range(60):
        problem = tiny_problem(Random(seed))
        if optimum(problem, problem.objective) is not None:
            found.append(replace(problem, objective=Random(seed).choice((Objective.MAKESPAN, Objective.SPAN))))
    return found


def test_a_unit_jumps_over_its_line_in_line_and_moving_it_back_undoes_it() -> None:
    random, problem = Random(0), ROWS[0].problem(1)
    units = Units(problem, start(problem).schedule)
    annealer = Annealer(units)
    order, count, place, _ = annealer.rows(units.orders)
    for _ in range(300):
        d = random.randrange(len(count))
        source, target = random.choices(range(int(count[d])), k=2)
        before = order.copy()
        shift(annealer.shop, order, place, d, source, target)
        row = order[d, : count[d]].tolist()
        assert sorted(row) == sorted(before[d, : count[d]].tolist())
        assert [int(place[unit]) for unit in row] == list(range(len(row)))
        for line in {units.line[unit] for unit in row}:
            held = [unit for unit in row if units.line[unit] == line]
            assert held == [unit for unit in before[d].tolist() if unit in held]
        shift(annealer.shop, order, place, d, target, source)
        assert (order == before).all()


def test_no_unit_is_moved_on_a_device_without_stages() -> None:
    problem = ROWS[0].problem(1)
    places = problem.placement
    wider = Placement("wider", places.devices + 1, places.stage_device, places.chains)
    problem = replace(problem, placement=wider, pools=(*problem.pools, problem.pools[0]))
    annealer = Annealer(Units(problem, sequential(problem)))
    order, count, place, _ = annealer.rows(annealer.units.orders)
    drawn = [fill(annealer.shop, order, count, np.zeros_like(place)) for _ in range(500)]
    assert count[-1] == 0
    assert {(source, target) for d, source, target in drawn if d == len(count) - 1} == {(0, 0)}


def test_annealed_orders_are_valid_never_worse_and_often_optimal() -> None:
    best_found = 0
    for problem in cases():
        timeline = start(problem)
        units = Units(problem, timeline.schedule)
        found = Annealer(units).run(units.orders, openings(timeline), HEAT, 3000, 1)
        assert found is not None
        after = best_times(problem, found.schedule)
        assert sorted(found.schedule.passes()) == sorted(timeline.schedule.passes())
        assert not validate(after)
        value = measure(after).value_ticks(problem.objective)
        assert value <= measure(timeline).value_ticks(problem.objective)
        best = optimum(problem, problem.objective)
        assert best is not None
        best_found += value == best.value
    assert best_found > len(cases()) // 2


def test_annealing_mends_a_list_schedule_where_memory_is_tight_and_says_the_same_twice() -> None:
    problem = next(row for row in ROWS if row.model == "1.5B" and row.m == 24).problem(1)
    tight = problem.with_room([(c or 0) * 3 // 4 for c in problem.room])
    timeline = start(tight)
    units = Units(tight, timeline.schedule)
    runs = [Annealer(units).run(units.orders, openings(timeline), HEAT, 60_000, 3) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0] is not None
    after = best_times(tight, runs[0].schedule)
    assert not validate(after)
    assert measure(after).span_ticks is not None
    assert measure(after).span_ticks < 0.98 * measure(timeline).span_ticks


def test_an_order_that_runs_in_a_circle_is_not_annealed() -> None:
    problem = cases()[0]
    timeline = start(problem)
    units = Units(problem, timeline.schedule)
    backwards = [order[::-1] for order in units.orders]
    assert Annealer(units).run(backwards, openings(timeline), HEAT, 100, 0) is None
