"""Tabu search over critical blocks: valid schedules of known length, and the optimum of small job shops."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from random import Random
from threading import Event

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.results.solution import Progress
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.sequential import Sequential
from solver.engine.finish import finished
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.engine.subsolvers.tasks.critical_blocks import CriticalBlocks
from solver.tasks.job_graph import graph_of, with_modes
from solver.tasks.tabu.search import TabuSearch, limits_nothing
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.task_brute_force import optimum, tiny_tasks


def in_turn(jobs: Jobs) -> dict[int, int]:
    """The jobs one after the other, each behind what it waits for."""
    graph, starts, now = graph_of(jobs, with_modes(jobs, fused=False)), dict[int, int](), 0
    for n in graph.sequence:
        starts[n], now = now, now + jobs.jobs[n].steps + max((lag for _, lag in graph.after[n]), default=0)
    return starts


def test_tiny_problems_come_to_the_optimum_and_never_below_it() -> None:
    solved = attained = 0
    for seed in range(40):
        given = tiny_tasks(Random(seed))
        jobs = jobs_of(given)
        starts = in_turn(jobs)
        if given.network.one_task_each or not limits_nothing(jobs, list(starts)):
            continue
        tabu = TabuSearch(jobs, starts, seed)
        for _ in range(3):
            tabu.step()
        schedule = schedule_of_starts(jobs, tabu.best)
        assert schedule is not None
        timeline = simulate(given, schedule)
        assert validate(timeline) == [], seed
        assert max(start + jobs.jobs[n].steps for n, start in tabu.best.items()) == tabu.ends
        least = optimum(given, given.objective)
        assert least is not None
        assert value_of(given, timeline) >= least, seed
        solved += 1
        attained += value_of(given, timeline) == least
    assert solved > 5
    assert attained > solved // 2


def test_a_job_shop_gets_shorter_by_it_alone() -> None:
    """Unequal micro-batches in any order, memory ample; not where memory limits what is held, nor alike ones."""
    factors = [1, 0.8, 1.2, 0.9, 1.1, 0.7]
    given = {"microbatches": 6, "microbatch_scale": factors, "microbatch_order": "free", "devices": 3}
    times = {"forward": 10, "backward": 20}
    job_shop = without_scale(problem(placement="interleaved", chunks=2, times=times, **given))
    engine = Engine(AnalyticBounds(load_only=True), (Sequential(),), (CriticalBlocks(),), finished)
    values: list[Fraction | int] = []
    shorter = Event()

    def end_shorter(moment: Progress) -> None:
        if values and moment.value is not None and moment.value < values[0] * job_shop.tick:
            shorter.set()

    for parts in ((), engine.subsolvers):
        own = Engine(engine.bounds, engine.construction, parts, finished, raise_bounds=False)
        search = Search(job_shop, counted(1), end_shorter, shorter, own)
        run(search)
        assert search.incumbent.timeline is not None
        assert validate(search.incumbent.timeline) == []
        values.append(search.incumbent.value)
    assert all(later < sooner for sooner, later in pairwise(values))
    limited = problem(memory={"capacity": 2}, times=times, microbatches=4, devices=2)
    jobs = jobs_of(limited)
    assert not limits_nothing(jobs, with_modes(jobs, fused=False))
