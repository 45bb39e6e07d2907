"""Relaxations as the matrix holds them to the optimum of a solve: nothing is found but where one is wrong.

All of them are held to exact optima by tests/pipesched/problem/test_relaxations.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from random import Random

import pytest

from benchmarks.matrix.draw import problem_case, text_of
from benchmarks.matrix.exact.model import TooLargeError, optimum
from benchmarks.matrix.problem_switches import SWITCHES
from benchmarks.matrix.relaxations import poorer_problems, too_high
from benchmarks.matrix.switch import together
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.parameter_times import least_parameter_ticks
from pipesched.problem.relaxed.relaxation import Relaxation
from pipesched.problem.relaxed.relaxations import (
    PARAMETERS,
    PARTNERS_MEMORY,
    RELAXATIONS,
    SAVED_ACTIVATIONS,
    WITH_PARTNERS,
)
from pipesched.results.solution import Solution, Status
from solver.solve import solve
from tests.support.counted import counted
from tests.support.wrong_relaxations import ACTIVATIONS_KEPT_WHOLE, PARTNERS_IN_OWN_MEMORY

# Switches of problems that a relaxation changes.
OF = {
    PARAMETERS.name: ("reduce", "step", "gather", "buckets", "window", "gather once", "holders"),
    SAVED_ACTIVATIONS.name: ("offload", "recompute", "decide", "host memory"),
    PARTNERS_MEMORY.name: ("offload to devices",),
}
COUNT = 5


def drawn(name: str, seeds: int) -> Iterator[tuple[Problem, Solution]]:
    """Problems with a feature of the relaxation and another one, with their optimum where the exact model has it."""
    random, found = Random(name), 0
    pairs = [pair for pair in together(SWITCHES, 2) if set(pair) & set(OF[name])]
    for seed in range(4 * seeds):
        solved = _solved(random.choice(pairs), seed)
        if solved is not None:
            found += 1
            yield solved
        if found == seeds:
            return


@cache
def _solved(names: tuple[str, ...], seed: int) -> tuple[Problem, Solution] | None:
    case = problem_case(names, seed)
    try:
        problem = problem_from(json.loads(text_of(case.document), parse_float=Decimal))
    except BadInput:
        return None
    if problem.objective == Objective.PERIOD or any("rounded" in note for note in problem.notes):
        return None
    try:
        least, _ = optimum(case.plain)
    except TooLargeError:
        return None
    solution = solve(problem, counted(1))
    if least is None or solution.status is not Status.OPTIMAL or solution.value_ticks is None:
        return None
    assert solution.value_ticks * problem.tick == least
    return problem, solution


def faults(name: str, relaxations: tuple[Relaxation, ...], seeds: int) -> Iterator[list[str]]:
    """What is wrong wherever the relaxation changed a problem."""
    for problem, solution in drawn(name, seeds):
        for poorer in poorer_problems(problem, relaxations):
            if name in {step.relaxation.name for step in poorer.steps}:
                yield list(too_high(poorer, solution))


@pytest.mark.parametrize("name", OF)
def test_no_relaxation_raises_an_optimum(name: str) -> None:
    found = list(faults(name, RELAXATIONS, COUNT))
    assert len(found) >= COUNT // 2
    assert not any(found), found


def _in_place_of(name: str, other: Relaxation) -> tuple[Relaxation, ...]:
    order = WITH_PARTNERS if name == PARTNERS_MEMORY.name else RELAXATIONS
    return tuple(other if one.name == name else one for one in order)


MUTANTS: dict[str, tuple[str, Callable[[], Relaxation]]] = {
    "a tick more is added back": (
        PARAMETERS.name,
        lambda: replace(PARAMETERS, added_back=lambda problem: least_parameter_ticks(problem) + 1),
    ),
    "activations held whole": (
        SAVED_ACTIVATIONS.name,
        lambda: ACTIVATIONS_KEPT_WHOLE,
    ),
    "partners' activations in the memory of one": (
        PARTNERS_MEMORY.name,
        lambda: PARTNERS_IN_OWN_MEMORY,
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_relaxation_is_found(mutant: str) -> None:
    name, made = MUTANTS[mutant]
    assert any(faults(name, _in_place_of(name, made()), 32))


def test_lookups_are_dropped_before_partners_memory() -> None:
    """A lookup on the second device takes memory there while the first one has not begun the micro-batch."""
    tasks = {
        "forward": [{"name": "lookup", "time": [1, 2], "needs": "nothing"}, {"name": "layers", "time": [5, 3]}],
        "backward": [{"name": "layers", "time": [1, 4]}],
    }
    memory = {
        "activation": [2, 1],
        "capacity": [5, 3],
        "offload": {"out": 1, "in": 1, "on": "copy", "to": [1, "host"]},
        "decide": {"offload": ["free", "never"]},
    }
    problem = problem_from({"devices": 2, "microbatches": 3, "times": {}, "tasks": tasks, "memory": memory})
    solution = solve(problem, counted(1))
    assert (solution.status, solution.value_ticks) == (Status.OPTIMAL, 28)
    partners_first = (PARTNERS_MEMORY, *WITH_PARTNERS[:-1])
    found = {
        order: [fault for poorer in poorer_problems(problem, order) for fault in too_high(poorer, solution)]
        for order in (WITH_PARTNERS, partners_first)
    }
    assert not found[WITH_PARTNERS] and found[partners_first], found


def test_lookups_are_dropped_before_parameters() -> None:
    """A lookup of a device that gathers nothing runs while the first stage still gathers."""
    tasks = {
        "forward": [{"name": "lookup", "time": [1, 4], "needs": "nothing"}, {"name": "layers", "time": 2}],
        "backward": [{"name": "layers", "time": 2}],
    }
    document = {"devices": 2, "microbatches": 1, "times": {}, "tasks": tasks, "objective": "iteration"}
    problem = problem_from({**document, "parameters": {"gather": {"time": [4, 0]}}})
    solution = solve(problem, counted(1))
    assert (solution.status, solution.value_ticks) == (Status.OPTIMAL, 13)
    parameters_first = (PARAMETERS, *(one for one in RELAXATIONS if one is not PARAMETERS))
    found = {
        order: [fault for poorer in poorer_problems(problem, order) for fault in too_high(poorer, solution)]
        for order in (RELAXATIONS, parameters_first)
    }
    assert not found[RELAXATIONS] and len(found[parameters_first]) == 1, found
