"""Solves of problems whose passes are several tasks: optima, bounds, schedules that are valid on any timing."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from threading import Event

import pytest

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.placed_jobs import PlacedJobs
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.problem.placement import linear
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer
from solver.local_search.annealing_run import AnnealingRun
from solver.solve import solve
from solver.tasks.dispatch import expanded
from solver.tasks.job_units import start_of
from solver.tasks.placing import placed_in, schedule_of
from solver.tasks.rank_search import RankSearch, Serial
from solver.tasks.window_search import WindowSearch
from tests.support.counted import counted
from tests.support.expert_parallel import mean_layers
from tests.support.task_brute_force import always_fits, optimum, tiny_tasks

HEAT = AnnealingRun(hot=0.5, cold=0.05, evenness=0.03, filling=0)
SURE = counted(20.0)


def several(seeds: range) -> list[tuple[int, Problem, Fraction]]:
    """Tiny problems of several streams with their optimum."""
    found = []
    for seed in seeds:
        problem = tiny_tasks(Random(seed))
        try:
            best = None if problem.network.one_task_each else optimum(problem, problem.objective)
        except ValueError:
            continue
        if best is not None:
            found.append((seed, problem, best))
    return found


@pytest.mark.parametrize("part", range(3))
def test_a_solve_finds_and_proves_the_optimum(part: int) -> None:
    for seed, problem, best in several(range(1000 + 8 * part, 1008 + 8 * part)):
        found = solve(problem, SURE)
        assert found.timeline is not None
        ticks = found.problem.tick / problem.tick
        assert found.lower_bound_ticks * ticks <= best <= value_of(problem, found.timeline), seed
        assert found.notes == (), seed
        if problem.objective == Objective.MAKESPAN:
            assert found.status is Status.OPTIMAL, seed
        assert validate(found.timeline) == []
        assert always_fits(problem, found.timeline.schedule), seed


def test_orders_of_passes_become_orders_of_tasks_that_are_safe() -> None:
    """And so do the windows cut from them and put back."""
    better = 0
    for seed, problem, best in several(range(3000, 3025)):
        jobs = jobs_of(problem)
        for order in (sequential(problem), next(iter(list_schedules(problem)))):
            found = list(expanded(jobs, order))
            assert len(found) == 3, seed  # of two rankings, and as it stands
            for schedule in found:
                timeline = best_times(problem, schedule)
                assert validate(timeline) == []
                assert always_fits(problem, schedule), seed
                placed = placed_in(jobs, timeline)
                assert placed is not None, seed
                windows = WindowSearch(placed, SURE)
                windows.step(1.0, Event())
                after = schedule_of(windows.placed, "")
                assert after is not None
                assert always_fits(problem, after), seed
                moved = best_times(problem, after)
                assert validate(moved) == []
                before, value = value_of(problem, timeline), value_of(problem, moved)
                assert best <= value, seed
                if problem.objective == Objective.MAKESPAN:
                    assert value <= before, seed
                better += value < before
    assert better > 5


def test_annealing_keeps_memory_safe_and_never_ends_later() -> None:
    """Of ranks, and of the orders of streams: never below the optimum either."""
    better = [0, 0]
    for seed, problem, best in several(range(4000, 4025)):
        jobs = jobs_of(problem)
        for schedule in expanded(jobs, sequential(problem)):
            placed = placed_in(jobs, simulate(problem, schedule))
            assert placed is not None, seed
            began = max(map(placed.end, placed.start))
            starts = ranked(placed, seed)
            ends = max(start + jobs.jobs[n].steps for n, start in starts.items())
            assert ends <= began, seed
            better[0] += ends < began
            before = simulate(problem, schedule)
            for found in (schedule_of_starts(jobs, starts), reordered(before, seed)):
                assert found is not None, seed
                assert always_fits(problem, found), seed
                timeline = simulate(problem, found)
                assert validate(timeline) == []
                assert value_of(problem, timeline) >= best, seed
            if problem.objective == Objective.MAKESPAN:
                assert value_of(problem, timeline) <= value_of(problem, before), seed
            better[1] += value_of(problem, timeline) < value_of(problem, before)
    assert better[0] > 3 and better[1] > 1, better


def ranked(placed: PlacedJobs, seed: int) -> dict[int, int]:
    """Starts after some steps over ranks."""
    serial = Serial(placed.jobs, placed.start)
    ranks = RankSearch(serial, placed.start, seed)
    for _ in range(10):
        ranks.step(0.05)
    return serial.starts(ranks.best)


def reordered(timeline: Timeline, seed: int) -> Schedule | None:
    """After some moves in the orders of streams; as it was where memory is of several streams."""
    start = start_of(timeline.problem, timeline)
    if start is None:
        return timeline.schedule
    units, openings = start
    found = Annealer(units).run(units.orders, openings, HEAT, 20_000, seed)
    assert found is not None
    return found.schedule


def test_two_stages_of_layers_are_proved() -> None:
    """Two devices and four micro-batches of the trace's mean layers."""
    found = solve(mean_layers(linear(2), 4), SURE)
    assert (found.status, found.value_ticks) == (Status.OPTIMAL, 16125)


def test_a_start_of_passes_is_taken_up() -> None:
    problem = mean_layers(linear(2), 2)
    start = sequential(problem)
    found = solve(problem, SURE, start=start)
    assert found.value_ticks is not None
    assert found.value_ticks < value_of(problem, simulate(problem, start))
