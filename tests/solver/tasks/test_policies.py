"""Policies of dispatching: schedules that are valid and safe, and do what the policy's numbers say."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Event

import numpy as np

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.files.problem_file import read_problem
from pipesched.problem.passes import RECOMPUTATIONS, RELOAD, B, F, Pass, Task, W
from pipesched.problem.placement import interleaved, linear
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.tasks.policies import TaskPolicies
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.tasks.job_graph import with_modes
from solver.tasks.policy.dispatcher import Dispatcher
from solver.tasks.policy.policy import EAGER, HIGHEST, LEAN, LOWEST, STEADY, Policy
from solver.tasks.policy.saving import ways_to_run
from solver.tasks.policy.search import PolicySearch
from solver.tasks.rank_search import Serial
from tests.support.expert_parallel import mean_layers
from tests.support.task_brute_force import always_fits, optimum, tiny_tasks
from tests.support.tiny_memory import tiny_memory

RECOMPUTE = RECOMPUTATIONS[0]
EXAMPLES = Path(__file__).parents[3] / "examples"


def dispatcher(problem: Problem) -> tuple[Serial, Dispatcher]:
    jobs = jobs_of(problem)
    serial = Serial(jobs, with_modes(jobs, fused=False))
    return serial, Dispatcher(serial)


def begins(problem: Problem, policy: Policy) -> dict[Pass, float]:
    """The first start of each pass, in ticks."""
    serial, own = dispatcher(problem)
    found = own.run(policy)
    assert found is not None
    starts: dict[Pass, float] = {}
    for n, start in serial.starts(found[1]).items():
        p = serial.jobs.jobs[n].task.of
        starts[p] = min(start / serial.jobs.scale, starts.get(p, np.inf))
    return starts


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
        for policy in (STEADY, EAGER, STEADY.moved(random), LEAN.moved(random), EAGER.moved(random)):
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
        for running in ways_to_run(jobs):
            own = Dispatcher(Serial(jobs, *running))
            for policy in (EAGER, EAGER._replace(reserve=2.0, later=1.0), LEAN.moved(random, back=True)):
                found = own.run(policy)
                schedule = None if found is None else schedule_of_starts(jobs, own.serial.starts(found[1]))
                refused += found is not None and schedule is None
                if schedule is None:
                    continue
                assert validate(simulate(problem, schedule)) == [] and always_fits(problem, schedule), seed
                for kind in complete:
                    complete[kind] += any(p.kind is kind for p in schedule.passes())
    assert min(complete.values()) > 30 and not refused


def test_copies_back_leave_when_they_are_needed() -> None:
    """On two of four devices: not before the backward of the next stage has begun, later by the policy's number."""
    problem = read_problem(EXAMPLES / "kimi-k2-offload-mini.yaml")
    jobs = jobs_of(problem)
    ((running, arcs),) = ways_to_run(jobs)
    own = Dispatcher(Serial(jobs, running, arcs))
    assert own.back and not dispatcher(mean_layers(linear(2), 4))[1].back
    # The last two stages are over before a copy out and back.
    copied = {jobs.jobs[n].task.of.stage for n in running if jobs.jobs[n].task.of.kind is RELOAD}
    assert copied == set(range(7))
    for policy in (STEADY, STEADY._replace(later=0.1)):
        found = own.run(policy)
        assert found is not None
        starts = own.serial.starts(found[1])
        lag = policy.later * 47.68 / float(problem.tick) * jobs.scale
        for stage in range(6):
            begun = starts[jobs.number[Task(Pass(B, stage + 1, 3))]]
            assert starts[jobs.number[Task(Pass(RELOAD, stage, 3))]] >= begun + lag
        schedule = schedule_of_starts(jobs, starts)
        assert schedule is not None and validate(simulate(problem, schedule)) == []


def test_no_more_micro_batches_are_under_way_than_a_policy_admits() -> None:
    """One more than the least number with a slack of 1, so that stages wait; without a limit of memory."""
    problem = mean_layers(linear(2), 8)
    for slack, most in ((0.5, 2), (5.0, 8)):
        starts = begins(problem, EAGER._replace(stretch=1.0, slack=slack))
        events = sorted(
            [(starts[Pass(F, 1, j)], 1) for j in range(8)] + [(starts[Pass(W, 1, j)], -1) for j in range(8)]
        )
        levels = np.cumsum([change for _, change in events])
        assert levels.max() <= most
    assert levels.max() > 2


def test_numbers_of_stages_again_are_theirs_alone() -> None:
    """A slack less on the second stage of each device lets fewer under way there; forwards later there run later."""
    problem = mean_layers(interleaved(2, 2), 6)
    assert dispatcher(problem)[1].again
    assert not dispatcher(mean_layers(linear(2), 4))[1].again
    first, again = (
        [begins(problem, EAGER._replace(slack=5.0, slack_again=less))[Pass(F, stage, 4)] for stage in (1, 2)]
        for less in (0.0, -5.0)
    )
    assert again[1] > first[1]
    late = begins(problem, EAGER._replace(slack=5.0, forward_later=6.0))
    assert late[Pass(F, 2, 0)] > begins(problem, EAGER._replace(slack=5.0))[Pass(F, 2, 0)]


def test_the_first_micro_batch_passes_where_streams_wait_for_it() -> None:
    """Its backward begins on stage 0 when it has gone all the way alone; later where nothing waits."""
    problem = mean_layers(linear(4), 8)
    alone = begins(mean_layers(linear(4), 1), EAGER)[Pass(B, 0, 0)]
    patient = STEADY._replace(express=0.2, most_patience=4.0, early=2.0)
    assert begins(problem, patient)[Pass(B, 0, 0)] == alone
    assert begins(problem, STEADY._replace(early=0.0, late=0.0, late_forward=0.0))[Pass(B, 0, 0)] > alone


def test_policies_beat_published_schedules_of_kimi_k2() -> None:
    """VPP + 1 takes 874.44 ms on the small example."""
    problem = read_problem(EXAMPLES / "kimi-k2-mini.yaml")
    serial, own = dispatcher(problem)
    found = own.run(STEADY)
    assert found is not None
    assert found[0] / serial.jobs.scale * float(problem.tick) < 870


def test_a_search_keeps_the_best_of_all_and_moves_within_the_ranges() -> None:
    _, own = dispatcher(mean_layers(linear(4), 8))
    searches = [PolicySearch([own], seed) for seed in range(2)]
    for one in searches:
        ends = [one.ends for _ in range(12) if one.step() or one.ends]
        assert ends == sorted(ends, reverse=True)  # type: ignore[type-var]
    best = min(one.ends or 0 for one in searches)
    for one in searches:
        one.go_on_from(searches)
    assert [one.ends for one in searches] == [best, best]
    random, policy = Random(1), STEADY
    for _ in range(200):
        policy = policy.moved(random)
        assert all(low <= each <= high for low, each, high in zip(LOWEST, policy, HIGHEST, strict=True))
    first = EAGER
    for _ in range(60):
        first = first.moved(random, again=False)
    assert first[19:] == EAGER[19:]
    assert first[:19] != EAGER[:19]


def test_the_search_gives_the_same_schedule_on_every_run() -> None:
    values = set()
    for _ in range(2):
        engine = Engine(AnalyticBounds(), (Sequential(),), (TaskPolicies(tries=3),), Search.solution)
        limits = Limits(seconds=float("inf"), workers=1, deterministic=1.0)
        search = Search(mean_layers(linear(4), 8), limits, lambda _: None, Event(), engine)
        run(search)
        assert search.incumbent.timeline is not None
        values.add(search.incumbent.value)
    assert len(values) == 1
