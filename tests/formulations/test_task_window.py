"""Windows of a schedule at task level: what it has is one of their solutions, and what they find fits what is around."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from ortools.sat.python import cp_model

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.window.task_window import TaskWindow
from pipesched.files.problem_file import problem_from
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.memory_options import Recomputation
from pipesched.problem.passes import BW, RECOMPUTATIONS, F, Pass
from pipesched.problem.placement import linear
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, Stage, TaskSpec
from pipesched.schedule.gather_insertion import with_gathers
from pipesched.schedule.schedule import schedule_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules, sequential
from solver.tasks.dispatch import expanded
from solver.tasks.placing import placed_in, put_back
from solver.tasks.placing import schedule_of as schedule_of_placed
from tests.support.expert_parallel import mean_layers


def copied(room: int) -> Problem:
    """Two devices; a backward ends with a copy on a stream of its own, and its memory is free after that."""
    copies = Stage(3, 7, None, 7, 1, tasks=((BW, (TaskSpec(COMPUTE, 2), TaskSpec("copy", 5))),))
    return Problem(linear(2), 6, (copies, replace(copies, forward=2)), (Pool(room),) * 2)


def layered(room: int | None) -> Problem:
    return replace(mean_layers(linear(2), 4), pools=(Pool(room),) * 2)


PROBLEMS = {"copies, room for 1": copied(1), "for 2": copied(2), "layers, for 2": layered(2), "any": layered(None)}


# How often the windows gain at least: with room for one there is nothing to gain.
GAINED = {"copies, room for 1": 0, "for 2": 2, "layers, for 2": 3, "any": 3}


@pytest.mark.parametrize("name", PROBLEMS)
def test_windows_fit_what_is_around_them(name: str) -> None:
    problem, rng, gained = PROBLEMS[name], Random(0), 0
    jobs = jobs_of(problem)
    for order in (sequential(problem), next(iter(list_schedules(problem)))):
        for schedule in expanded(jobs, order):
            placed = placed_in(jobs, simulate(problem, schedule))
            assert placed is not None
            for _ in range(8):
                since, until = sorted(rng.sample(range(placed.value), 2))
                window = TaskWindow(placed, since, until, rng.choice(([0], [1], [0, 1])))
                solver = cp_model.CpSolver()
                solver.parameters.num_workers, solver.parameters.max_deterministic_time = 1, 0.2
                status = solver.solve(window.cp)
                assert status != cp_model.INFEASIBLE
                if status == cp_model.OPTIMAL:
                    assert solver.objective_value <= placed.value
                if status == cp_model.UNKNOWN:
                    continue
                found = put_back(window.window, window.starts(solver.value))
                assert found is not None
                assert found.value <= max(placed.value, solver.objective_value)
                gained += found.value < placed.value
                placed = found
    assert gained >= GAINED[name]


def test_a_window_decides_anew_how_activations_are_held() -> None:
    """All are recomputed at first, which takes 39; kept, they take 12, and there is room for all."""
    stage = Stage(2, 2, None, 2, activation=1, recompute=(Recomputation("full", 9, 0),))
    problem = Problem(linear(1), 3, (stage,), (Pool(3),))
    jobs = jobs_of(problem)
    recomputed = [schedule_of([[Pass(k, 0, j) for j in range(3) for k in (F, RECOMPUTATIONS[0], BW)]])]
    (schedule, *_) = (one for order in recomputed for one in expanded(jobs, order))
    placed = placed_in(jobs, simulate(problem, schedule))
    assert placed is not None
    window = TaskWindow(placed, 0, placed.value, range(1))
    solver = cp_model.CpSolver()
    assert solver.solve(window.cp) == cp_model.OPTIMAL
    better = put_back(window.window, window.starts(solver.value))
    assert better is not None
    assert (placed.value, better.value) == (39 * jobs.scale, 12 * jobs.scale)
    assert {jobs.jobs[n].task.of.kind for n in better.start} == {F, BW}


GATHERED: dict[str, Any] = {
    "devices": 2,
    "microbatches": 2,
    "placement": "v-shape",
    "times": {"forward": 4, "backward": 4},
    "memory": {
        "capacity": 3,
        "recompute": [{"name": "full", "time": [2, 3, 2, 3]}, {"name": "attention", "time": 1, "keeps": 0.5}],
        "decide": {"recompute": "always"},
    },
    "objective": "iteration",
    "parameters": {"gather": {"time": [2, 2, 2, 1], "memory": 1, "keep": {"window": 1}}},
}


def test_a_recomputation_that_a_window_adds_runs_while_its_parameters_are_there() -> None:
    """All activations are recomputed in full at first: windows then choose the other recomputation for some."""
    problem, backward = problem_from(GATHERED), [RECOMPUTATIONS[0], BW]
    orders = [
        [Pass(kind, stage, j) for j in range(2) for stage, kind in [*product(own, [F]), *product(own[::-1], backward)]]
        for own in problem.placement.stages_of
    ]
    timeline = simulate(problem, with_gathers(problem, schedule_of(orders)))
    assert not validate(timeline)
    placed, rng = placed_in(jobs_of(problem), timeline), Random(0)
    assert placed is not None
    changed = 0
    for _ in range(40):
        if changed == 3:
            break
        since = rng.randrange(placed.value // 2)
        window = TaskWindow(placed, since, since + placed.value // 2, range(2))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.max_deterministic_time = 1, 0.1
        solver.parameters.random_seed = rng.randrange(1000)
        if solver.solve(window.cp) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            continue
        found = put_back(window.window, window.starts(solver.value))
        whole = None if found is None else schedule_of_placed(found, "optimised")
        if whole is not None:
            changed += whole.pass_set != timeline.schedule.pass_set
            assert not validate(simulate(problem, whole))
    assert changed
