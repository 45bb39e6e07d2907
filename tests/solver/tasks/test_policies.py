"""Policies of dispatching: schedules that are valid and safe, and do what the policy's numbers say."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Event

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.files.problem_file import read_problem
from pipesched.problem.passes import RECOMPUTATIONS, RELOAD
from pipesched.problem.placement import linear
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.sequential import Sequential
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.engine.subsolvers.tasks.policies import TaskPolicies
from solver.tasks.job_graph import with_modes
from solver.tasks.policy.dispatcher import Dispatcher
from solver.tasks.policy.policy import EAGER, STEADY
from solver.tasks.policy.search import PolicySearch
from solver.tasks.rank_search import Serial
from solver.tasks.saving_modes import saving_modes
from tests.support.counted import counted
from tests.support.expert_parallel import mean_layers
from tests.support.task_brute_force import always_fits, optimum, tiny_tasks
from tests.support.tiny_memory import tiny_memory

RECOMPUTE = RECOMPUTATIONS[0]
EXAMPLES = Path(__file__).parents[3] / "examples"


def dispatcher(problem: Problem) -> tuple[Serial, Dispatcher]:
    jobs = jobs_of(problem)
    serial = Serial(jobs, with_modes(jobs, fused=False))
    return serial, Dispatcher(serial)


def test_schedules_of_policies_are_valid_safe_and_never_below_the_optimum() -> None:
    attained = complete = 0
    for seed in range(6000, 6030):
        problem = tiny_tasks(Random(seed))
        try:
            best = None if problem.network.one_task_each else optimum(problem, problem.objective)
            serial, own = dispatcher(problem)
        except ValueError:
            continue
        random = Random(seed)
        for policy in (STEADY, EAGER, STEADY.moved(random), EAGER.moved(random)):
            found = own.run(policy)
            schedule = None if found is None else schedule_of_starts(serial.jobs, serial.starts(found[1]))
            if schedule is None or best is None:
                continue
            timeline = simulate(problem, schedule)
            assert validate(timeline) == [], seed
            assert always_fits(problem, schedule), seed
            assert value_of(problem, timeline) >= best, seed
            complete += 1
            attained += value_of(problem, timeline) == best
    assert complete > 30
    assert attained > 10


def test_activations_come_back_in_time_and_fit_on_any_timing() -> None:
    """Offloaded or recomputed: every schedule is valid and holds its memory, whatever its tasks take."""
    complete, refused = dict.fromkeys((RELOAD, RECOMPUTE), 0), 0
    for seed in range(60):
        problem, random = tiny_memory(Random(seed)), Random(seed)
        jobs = jobs_of(problem)
        for running in saving_modes(jobs):
            own = Dispatcher(Serial(jobs, *running))
            for policy in (EAGER, EAGER._replace(reserve=2.0, later=1.0), STEADY.moved(random, back=True)):
                found = own.run(policy)
                schedule = None if found is None else schedule_of_starts(jobs, own.serial.starts(found[1]))
                refused += found is not None and schedule is None
                if schedule is None:
                    continue
                assert validate(simulate(problem, schedule)) == [] and always_fits(problem, schedule), seed
                for kind in complete:
                    complete[kind] += any(p.kind is kind for p in schedule.passes())
    assert min(complete.values()) > 30 and not refused


def test_a_search_of_policies_beats_published_schedules_of_kimi_k2() -> None:
    """VPP + 1 takes 874.44 ms on the small example."""
    problem = read_problem(EXAMPLES / "kimi-k2-mini.yaml")
    serial, own = dispatcher(problem)
    search = PolicySearch([own], STEADY, 0)
    for _ in range(60):
        search.step()
    assert search.ends is not None
    assert search.ends / serial.jobs.scale * float(problem.tick) < 850


def test_searches_go_on_from_those_of_the_same_start_alone() -> None:
    problem = read_problem(EXAMPLES / "kimi-k2-mini.yaml")
    _, own = dispatcher(problem)
    first, second, other = (PolicySearch([own], start, 0) for start in (STEADY, STEADY, EAGER))
    assert first.step() and other.step()
    assert first.ends is not None and other.ends is not None and first.ends < other.ends
    for one in (second, other):
        one.go_on_from([first, second, other])
    assert second.ends == first.ends and second.policy == first.policy
    assert other.ends > first.ends and other.policy == EAGER


def test_the_search_gives_the_same_schedule_on_every_run() -> None:
    values = set()
    for _ in range(2):
        engine = Engine(AnalyticBounds(), (Sequential(),), (TaskPolicies(tries=3),), Search.solution)
        limits = counted(1.0)
        search = Search(mean_layers(linear(4), 8), limits, lambda _: None, Event(), engine)
        run(search)
        assert search.incumbent.timeline is not None
        values.add(search.incumbent.value)
    assert len(values) == 1
