"""Offload and recomputation in the search: the optimum of brute force, safe on any timing, from every way in."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Event
from typing import Any

import pytest

from formulations.jobs.jobs_of_problem import jobs_of
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.published import candidate
from solver.solve import solve
from solver.tasks.dispatch import expanded
from solver.tasks.memory_decisions import rules, with_decisions
from solver.tasks.placing import placed_in, schedule_of
from solver.tasks.window_search import WindowSearch
from tests.support.counted import counted
from tests.support.task_brute_force import always_fits
from tests.support.tiny_lent import tiny_lent
from tests.support.tiny_memory import tiny_memory

SURE = counted(5.0)


@pytest.mark.parametrize(
    ("draw", "seeds", "least"),
    [(tiny_memory, range(100, 113), 12), (tiny_lent, range(40), 9)],
    ids=["hosts", "other devices"],
)
def test_orders_with_decisions_are_safe_and_so_are_windows_of_them(
    draw: Callable[[Random], Problem], seeds: range, least: int
) -> None:
    tried = 0
    for seed in seeds:
        problem = draw(Random(seed))
        jobs = jobs_of(problem)
        for rule in rules(problem):
            order = with_decisions(problem, sequential(problem.keeping_activations()), rule)
            for schedule in () if order is None else expanded(jobs, order):
                timeline = best_times(problem, schedule)
                assert validate(timeline) == [], seed
                assert always_fits(problem, schedule), seed
                placed = placed_in(jobs, timeline)
                if placed is None:
                    continue
                windows = WindowSearch(placed, SURE)
                windows.step(1.0, Event())
                after = schedule_of(windows.placed, "")
                assert after is not None
                assert always_fits(problem, after), seed
                assert validate(best_times(problem, after)) == [], seed
                tried += 1
            break
    assert tried > least


def three_devices(microbatches: int, **memory: object) -> Problem:
    times = {"forward": 10, "backward": 10, "weight": 6, "transfer": 1}
    document: dict[str, Any] = {"devices": 3, "microbatches": microbatches, "times": times}
    return problem_from(document | {"memory": {"capacity": 2} | memory})


@pytest.mark.parametrize(
    ("memory", "best"),
    [
        ({}, 140),
        ({"offload": {"out": 5, "in": 5, "host_capacity": 2}}, 116),
        ({"recompute": [{"name": "full", "time": 10}]}, 116),
    ],
)
def test_a_solve_proves_what_each_way_is_worth(memory: dict[str, Any], best: int) -> None:
    found = solve(three_devices(3, **memory), SURE)
    assert (found.status, found.value) == (Status.OPTIMAL, best)
    assert found.timeline is not None
    assert validate(found.timeline) == []
    assert max(measure(found.timeline).peak_quanta) == 2
    kinds = {p.kind for p in found.timeline.schedule.passes()}
    assert (OFFLOAD in kinds, RECOMPUTATIONS[0] in kinds) == ("offload" in memory, "recompute" in memory)
    decisions: Any = found.document()["decisions"]
    assert any(decisions.values()) == bool(memory)


def test_published_schedules_do_not_keep_what_must_move() -> None:
    """A file that has one stage always offloaded is no defect of the schedules that offload nothing."""
    document = {
        "devices": 2,
        "microbatches": 3,
        "times": {"forward": 10, "backward": 10, "weight": 6, "transfer": 1},
        "memory": {"capacity": 3, "offload": {"out": 5, "in": 5}, "decide": {"offload": ["always", "free"]}},
    }
    problem = problem_from(document)
    found = {name: candidate(problem, HEURISTICS[name]) for name in HEURISTICS.names()}
    assert not [name for name, one in found.items() if one.defect]
    assert found["1f1b"].timeline is None and "stage 0; memory.decide" in found["1f1b"].reason
    assert found["pipeoffload-full"].timeline is not None
