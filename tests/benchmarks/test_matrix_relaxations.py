"""Relaxations against the optimum of drawn problems that have their feature and another; wrong ones are found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from random import Random

import pytest

from benchmarks.matrix.draw import problem_case, text_of
from benchmarks.matrix.exact.model import TooLargeError, optimum
from benchmarks.matrix.problem_switches import SWITCHES
from benchmarks.matrix.relaxations import poorer_problems, too_high
from benchmarks.matrix.switch import together
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.problem.passes_alone import passes_alone
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.parameter_times import least_besides
from pipesched.problem.relaxed.relaxation import Relaxation
from pipesched.problem.relaxed.relaxations import (
    ARCS_BETWEEN_CHAINS,
    LOOKUPS,
    PARAMETERS,
    PASS_MEMORY,
    RELAXATIONS,
    SAVED_ACTIVATIONS,
    UNEQUAL_MICROBATCHES,
)
from pipesched.results.solution import Solution, Status
from solver.limits import Limits
from solver.solve import solve
from tests.support.wrong_relaxations import ACTIVATIONS_KEPT_WHOLE, ROOM_BESIDE_ALL_WORKSPACE

# Switches of problems that a relaxation changes.
OF = {
    PARAMETERS.name: ("reduce", "step", "gather", "buckets", "window", "gather once", "holders"),
    UNEQUAL_MICROBATCHES.name: ("unequal", "free order"),
    LOOKUPS.name: ("lookups",),
    PASS_MEMORY.name: ("workspace", "until the end"),
    ARCS_BETWEEN_CHAINS.name: ("pieces", "encoder", "shared head", "kept for later"),
    SAVED_ACTIVATIONS.name: ("offload", "recompute", "decide", "host memory"),
}
COUNT = 8


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
    if problem.objective is Objective.PERIOD or any("rounded" in note for note in problem.notes):
        return None
    try:
        least, _ = optimum(case.plain)
    except TooLargeError:
        return None
    solution = solve(problem, Limits(seconds=3, workers=1))
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


@pytest.mark.parametrize("name", [relaxation.name for relaxation in RELAXATIONS])
def test_no_relaxation_raises_an_optimum(name: str) -> None:
    found = list(faults(name, RELAXATIONS, COUNT))
    assert len(found) >= COUNT // 2
    assert not any(found), found


def _in_place_of(name: str, other: Relaxation) -> tuple[Relaxation, ...]:
    return tuple(other if one.name == name else one for one in RELAXATIONS)


def _as_the_longest(problem: Problem) -> Problem:
    """Micro-batches that all take as long as the longest."""
    scale = problem.microbatch_scale
    longest = replace(problem, microbatch_scale=(max(scale),) * len(scale)) if scale else problem
    return UNEQUAL_MICROBATCHES.relax(longest)


def _with_the_lookups(problem: Problem) -> Problem:
    """Forwards that wait for their lookups, and take as long again."""
    if all(stage.entry == 0 for stage in problem.stages):
        return problem
    plain = LOOKUPS.relax(problem)
    stages = [
        replace(poorer, tasks=tuple((kind, tuple(task._replace(ticks=2 * task.ticks) for task in own))
                                    for kind, own in poorer.tasks))
        for poorer in plain.stages
    ]  # fmt: skip
    return replace(plain, stages=tuple(stages))


MUTANTS: dict[str, tuple[str, Callable[[], Relaxation]]] = {
    "a tick more is added back": (
        PARAMETERS.name,
        lambda: replace(PARAMETERS, added_back=lambda problem: least_besides(problem) + 1),
    ),
    "room for the largest parameters of a device": (
        PARAMETERS.name,
        lambda: replace(PARAMETERS, relax=partial(passes_alone, room_for=lambda own: 2 * max(own, default=0))),
    ),
    "all micro-batches as long as the longest": (
        UNEQUAL_MICROBATCHES.name,
        lambda: replace(UNEQUAL_MICROBATCHES, relax=_as_the_longest),
    ),
    "the tasks behind a lookup take longer": (LOOKUPS.name, lambda: replace(LOOKUPS, relax=_with_the_lookups)),
    "two ticks for chains": (
        ARCS_BETWEEN_CHAINS.name,
        lambda: replace(ARCS_BETWEEN_CHAINS, added_back=lambda problem: 2),
    ),
    "room beside all workspace": (
        PASS_MEMORY.name,
        lambda: ROOM_BESIDE_ALL_WORKSPACE,
    ),
    "activations held whole": (
        SAVED_ACTIVATIONS.name,
        lambda: ACTIVATIONS_KEPT_WHOLE,
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_relaxation_is_found(mutant: str) -> None:
    name, made = MUTANTS[mutant]
    assert any(faults(name, _in_place_of(name, made()), 4 * COUNT))
