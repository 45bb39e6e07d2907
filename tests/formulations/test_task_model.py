"""The exact model at task level: its optimum is that of every order, mode and wait; its schedules are safe and valid."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from formulations.variables.known_order import KnownOrder
from formulations.variables.literal_count import literal_count
from formulations.variables.operations import Operations
from pipesched.problem import placement
from pipesched.problem.device_resources import Pool
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import COMPUTE, Stage, TaskSpec
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.timing import best_times
from tests.support.task_brute_force import always_fits, optimum, tiny_tasks


def solved(problem: Problem) -> tuple[ExactModel, cp_model.CpSolver, Schedule]:
    model, solver = ExactModel(jobs_of(problem), 10**6, 0), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.cp) == cp_model.OPTIMAL
    schedule = schedule_of_starts(model.jobs, model.starts(solver.value))
    assert schedule is not None
    return model, solver, schedule


@pytest.mark.parametrize("part", range(5))
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
        if problem.objective is Objective.MAKESPAN:
            assert bound == best == value, seed
        assert validate(timeline) == []
        assert always_fits(problem, schedule), seed
        compared += 1
    assert compared > 10


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


def test_a_pass_ends_with_the_last_of_its_tasks() -> None:
    """Weight gradients on two streams: the second forward waits for the longer one, listed first."""
    tasks = ((W, (TaskSpec("copy", 9), TaskSpec(COMPUTE, 1))),)
    one = Problem(placement.linear(1), 2, (Stage(1, 1, 10, 40, tasks=tasks),), (Pool(1),))
    with_waits = solved(one)
    assert with_waits[1].value(with_waits[0].objective) == 22
    assert [(each.before.of.kind, each.before.part, each.after.of.kind) for each in with_waits[2].waits] == [(W, 0, F)]
    without = replace(one, pools=(Pool(2),))
    assert solved(without)[1].objective_value == 20


def test_starts_that_memory_does_not_allow_are_no_schedule() -> None:
    free = jobs_of(copies(2))
    schedule = solved(copies(2))[2]
    starts = {free.number[task]: start for task, start in simulate(copies(2), schedule).starts.items()}
    assert schedule_of_starts(free, starts) is not None
    assert schedule_of_starts(jobs_of(copies(1)), starts) is None


def test_a_fused_backward_that_is_b_and_then_w_is_left_out() -> None:
    stage = Stage(1, 2, 3, 5, tasks=())
    one = Problem(placement.linear(1), 1, (stage,))

    def kinds(problem: Problem) -> set[str]:
        return {job.task.of.kind.value for job in jobs_of(problem).jobs}

    assert kinds(one) == {"F", "B", "W"}
    assert kinds(one.with_stages(fused=(4,))) == {"F", "B", "W", "BW"}
    in_row = (TaskSpec("comm", 2), TaskSpec(COMPUTE, 3))
    tasks = ((BW, in_row), *(((kind, (task,))) for kind, task in zip((B, W), in_row, strict=True)))
    assert kinds(replace(one, stages=(replace(stage, tasks=tasks),))) == {"F", "B", "W"}
    woven = (TaskSpec("comm", 2), TaskSpec(COMPUTE, 3), TaskSpec("comm", 1))
    weight = (TaskSpec(COMPUTE, 3, after=0),)
    for fused, left_out in ((woven, True), ((woven[1], woven[0], woven[2]), False), (woven[:2], False)):
        tasks = ((B, (woven[0], woven[2])), (W, weight), (BW, fused))
        assert (kinds(replace(one, stages=(replace(stage, tasks=tasks),))) == {"F", "B", "W"}) == left_out
    takes_more = replace(one, stages=(replace(stage, freed=-1),))
    assert kinds(takes_more) == {"F", "B", "W"}
    assert kinds(replace(takes_more, pools=(Pool(3),))) == {"F", "B", "W", "BW"}


def test_what_precedes_holds_where_both_run() -> None:
    """Two stages on a device, each backward fused or split: gradients go back, weight passes may come at any time."""
    one = Problem(placement.explicit(1, [0, 0]), 1, (Stage(1, 1, 1, 1), Stage(1, 1, 1, 1)))
    known = KnownOrder(Operations(jobs_of(one)))
    at = {f"{x.role.value}{x.stage}.{x.microbatch}": x for x in known.operations.jobs_of}
    before = [pair for pair in permutations(at, 2) if known.precedes(*(at[task] for task in pair))]
    assert {pair for pair in before if "F" not in "".join(pair)} == {
        *(("B1.0", other) for other in ("B0.0", "W0.0", "W1.0")),
        ("B0.0", "W0.0"),
    }


def test_jobs_of_a_type_come_by_micro_batch_unless_modes_differ() -> None:
    jobs = jobs_of(copies(2))
    assert len(jobs.consecutive) == 3
    assert literal_count(copies(2)) == 1  # the first's backward, the second's forward
    either = Problem(placement.linear(1), 2, (Stage(3, 2, 2, 3),))
    assert [one[:2] for one in jobs_of(either).choices] == [(0, 0), (0, 1)]
    assert jobs_of(either).consecutive == ()
    assert all(job.choice is None for job in jobs_of(either).jobs if job.task.of.kind is F)
