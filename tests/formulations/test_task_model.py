"""The exact model of tasks against every order, and how many order literals it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from random import Random

import pytest
from ortools.sat.python import cp_model

from benchmarks.proofs.memory_options import brute_force
from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from formulations.variables.literal_count import literal_count
from formulations.variables.model_variables import Model
from pipesched.problem import placement
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.passes import BW
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import finer
from pipesched.problem.stage import COMPUTE, Stage, TaskSpec
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.timing import best_times
from tests.support.daily import daily
from tests.support.makers import PLACEMENTS, problem
from tests.support.task_brute_force import SHAPES, always_fits, optimum, tiny_tasks
from tests.support.tiny_lent import tiny_lent
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory


def solved(problem: Problem) -> tuple[ExactModel, cp_model.CpSolver, Schedule]:
    model, solver = ExactModel(jobs_of(problem), 10**6, 0), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    schedule = schedule_of_starts(model.jobs, model.starts(solver.value))
    assert schedule is not None
    return model, solver, schedule


@pytest.mark.parametrize("part", daily(range(5), 2))
def test_the_optimum_is_that_of_every_order_mode_and_wait(part: int) -> None:
    compared = 0
    for seed in range(16 * part, 16 * part + 16):
        problem = tiny_tasks(Random(seed))
        try:
            best = optimum(problem, problem.objective)
        except ValueError:
            continue
        model, solver, schedule = solved(problem)
        timeline = best_times(problem, schedule)
        bound, value = model.bound(solver.best_objective_bound), value_of(problem, timeline)
        assert best is not None
        assert bound <= best <= value, seed
        if problem.objective == Objective.MAKESPAN:
            assert bound == best == value, seed
        assert validate(timeline) == []
        assert always_fits(problem, schedule), seed
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("make", (tiny_memory, tiny_unequal_memory, tiny_lent))
def test_with_activations_that_may_be_saved_the_optimum_is_that_of_every_order(
    make: Callable[[Random], Problem],
) -> None:
    seen = Counter[str]()
    for number in range(40):
        seen.update(brute_force(make(Random(number))))
    assert seen["problems"] > 20


# In the first two a forward has two tasks on a stream where backwards may be fused or not.
@pytest.mark.parametrize("seed", (1584, 1626, *range(100, 112)))
def test_no_devices_refute_the_optimum(seed: int) -> None:
    problem = tiny_tasks(Random(seed), (*SHAPES, (placement.linear(3), 1, 2)))
    try:
        best = optimum(problem, problem.objective)
    except ValueError:
        return
    assert best is not None
    fine = finer(problem, Fraction(best).denominator)
    for count in range(1, problem.devices + 1):
        for devices in combinations(range(problem.devices), count):
            model, solver = ExactModel(jobs_of(fine), Fraction(best).numerator, 0, devices=devices), cp_model.CpSolver()
            solver.parameters.num_workers, solver.parameters.stop_after_first_solution = 1, True
            assert solver.solve(model.cp) in (cp_model.OPTIMAL, cp_model.FEASIBLE), devices


def copies(room: int | None) -> Problem:
    """Two micro-batches on one device; a backward ends with a long copy on a stream of its own, and memory after it."""
    tasks = ((BW, (TaskSpec(COMPUTE, 2), TaskSpec("copy", 5))),)
    stage = Stage(3, 7, None, 7, tasks=tasks)
    return Problem(placement.linear(1), 2, (stage,), (Pool(room),))


def test_memory_behind_another_stream_is_waited_for() -> None:
    """With room for one, the second forward starts when the first copy has ended; with more it does not wait."""
    model, solver, schedule = solved(copies(1))
    assert solver.value(model.objective) == 20
    assert [(str(one.before), str(one.after)) for one in schedule.waits] == [("BW0.0/1", "F0.1")]
    assert always_fits(copies(1), schedule)
    assert not always_fits(copies(1), Schedule(schedule.orders, "", schedule.task_orders))
    model, solver, schedule = solved(copies(2))
    assert (solver.value(model.objective), schedule.waits) == (15, ())


def test_starts_that_memory_does_not_allow_are_no_schedule() -> None:
    free = jobs_of(copies(2))
    schedule = solved(copies(2))[2]
    starts = {free.number[task]: start for task, start in simulate(copies(2), schedule).starts.items()}
    assert schedule_of_starts(free, starts) is not None
    assert schedule_of_starts(jobs_of(copies(1)), starts) is None


@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_count_is_that_of_the_model(name: str) -> None:
    for seed in daily(range(40), 4):
        rng = Random(seed)
        times: dict[str, object] = {"forward": rng.randrange(4), "backward": 2}
        if rng.random() < 0.8:
            times["weight"] = 3
            times |= {"fused": rng.randrange(3, 7)} if rng.random() < 0.5 else {}
        taken = rng.randrange(1, 5)
        memory: dict[str, object] = {"activation": taken, "freed_by_backward": rng.randrange(-2, taken + 1)}
        if rng.random() < 0.8:
            memory["capacity"] = rng.randrange(taken, 6 * taken)
        one = problem(2, rng.randrange(1, 8), **PLACEMENTS[name](2), times=times, memory=memory)
        pairs = [frozenset(pair[:2]) for order in Model(jobs_of(one)).orders for pair in order.undecided()]
        assert literal_count(one) == len(set(pairs))
        assert literal_count(one) == literal_count(one, [0]) + literal_count(one, [1])


def test_of_very_many_jobs_every_pair_counts() -> None:
    one = problem(256, 512, memory={"capacity": 256, "freed_by_backward": 0.25})
    assert literal_count(one) == 256 * 1536 * 1535 // 2
