"""The linear relaxation: what any multipliers prove is below the true optimum, and the published optima are attained."""

from __future__ import annotations

from random import Random
from threading import Event

import pytest

from formulations.exact.lp_relaxation import Relaxation
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.critical_paths import blocks_outlast_passes
from solver.bounds.lp_bound import lp_bounds
from tests.support.brute_force import attained, optimum, tiny_problem
from tests.support.columns import Costs, Memory, build, costs_of
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


def blocks_longer_than_passes(random: Random) -> Problem:
    """A tiny problem whose blocks save time and take at least as long as either pass."""
    one = tiny_problem(random)
    costs, where = costs_of(one), one.placement
    mates = [where.stages_of[where.stage_device[s]] for s in range(where.stages)]
    least = [max(f, *(costs.fused[b] for b in mates[s])) for s, f in enumerate(costs.forward)]
    blocks = tuple(random.randint(low, low + f) for low, f in zip(least, costs.forward, strict=True))
    return one.with_stages(overlapped=blocks)


@pytest.mark.parametrize("seed", range(30))
def test_single_devices_prove_nothing_wrong_where_blocks_are_longer_than_their_passes(seed: int) -> None:
    problem = blocks_longer_than_passes(Random(seed))
    assert blocks_outlast_passes(problem)
    best = optimum(problem, problem.objective)
    if best is not None:
        found = list(lp_bounds(problem, best.value + 3, 60, Event()))
        assert all(one.device is not None and one.value <= best.value for one in found)


def test_all_devices_are_needed_where_a_block_is_shorter_than_its_forward() -> None:
    costs = Costs((4, 4), (1, 1), None, (1, 1), (0, 0), overlapped=(4, 4))
    problem = build(placement.linear(2), 2, costs, Memory((1, 1), (0, 0), (None, None)))
    assert blocks_outlast_passes(problem)
    assert not blocks_outlast_passes(problem.with_stages(overlapped=(4, 3)))
    shorter = problem.with_stages(fused=(1, 5), backward=(1, 5))
    assert not blocks_outlast_passes(shorter)
    assert [one.device for one in lp_bounds(shorter, 99, 60, Event())] == [None]
