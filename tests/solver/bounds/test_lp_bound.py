"""The linear relaxation: what any multipliers prove is below the true optimum, and the published optima are attained."""

from __future__ import annotations

from random import Random
from threading import Event

import pytest

from formulations.exact.lp_relaxation import Relaxation
from pipesched.problem.problem import Objective
from solver.bounds.lp_bound import lp_bounds
from tests.support.brute_force import attained, optimum, tiny_problem
from tests.support.published import ROWS


@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
def test_no_relaxation_is_above_the_optimum(objective: Objective) -> None:
    assert attained(lambda problem, near: lp_bounds(problem, near, 60, Event()), objective, 80) > 0


def test_multipliers_out_of_thin_air_prove_little_but_nothing_wrong() -> None:
    for seed in range(40):
        random = Random(seed)
        problem = tiny_problem(random)
        best = optimum(problem, problem.objective)
        if best is None:
            continue
        relaxation = Relaxation(problem, best.value, 10**6, range(problem.devices))
        guess = [random.uniform(-2, 2) for _ in relaxation.rows]
        assert relaxation.proved(guess) <= best.value, seed
        assert relaxation.proved([0.0] * len(relaxation.rows)) <= 0


@pytest.mark.parametrize(("cap", "bound"), [(1, 1310405), (2, 1152599)])
def test_it_proves_the_published_optima_of_the_1_5b_profile(cap: int, bound: int) -> None:
    row = next(row for row in ROWS if row.model == "1.5B" and row.m == 24)
    problem = row.problem(cap)
    value = round(bound * 1.1)
    found = lp_bounds(problem, value, 600, Event())
    assert max(certificate.value for certificate, _ in zip(found, range(2), strict=False)) == bound
