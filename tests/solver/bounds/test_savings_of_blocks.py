"""Bounds of problems whose blocks save time by pairs of stages: none above the optimum of all orders, all verified."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import certificates
from tests.solver.bounds.test_mode_bounds import equal, strongest
from tests.support.brute_force import optimum, tiny_problem
from tests.support.task_brute_force import TooManyOrdersError


def tiny(random: Random) -> Problem:
    one = tiny_problem(random)
    saves = [random.randint(0, min(stage.forward, stage.fused)) for stage in one.stages]
    one = one.with_stages(overlapped=[None] * len(saves), block_saves=saves)
    return replace(one, objective=random.choice((Objective.MAKESPAN, Objective.SPAN)))


@pytest.mark.parametrize("seeds", [range(60), range(60, 120)])
def test_no_certificate_is_above_the_optimum_and_each_is_verified(seeds: range) -> None:
    seen = 0
    for seed in seeds:
        one = tiny(Random(seed))
        try:
            best = optimum(one, one.objective, most=20_000)
        except TooManyOrdersError:
            continue
        if best is None:
            continue
        timeline = simulate(one, best.schedule)
        assert validate(timeline) == [], seed
        for certificate in certificates(one, one.objective):
            assert certificate.value_ticks <= best.value, (seed, certificate)
            assert check_bound(one, certificate).verdict is Verdict.VERIFIED, (seed, certificate)
            seen += 1
    assert seen > 150


def test_savings_that_are_those_of_blocks_by_forward_prove_as_much() -> None:
    """With equal stages a block of F + BW - s is the same either way."""
    one = equal(placement.bidirectional(4), 16, 3, overlapped=24)
    count = len(one.stages)
    other = one.with_stages(overlapped=[None] * count, block_saves=[6] * count)
    for name in ("unpaired passes", "memory and modes"):
        assert strongest(one, name) == strongest(other, name)


def test_stages_of_one_device_save_no_more_than_each_can() -> None:
    """Two stages, 10 + 10 and 30 + 30, whose blocks save 4 and 20: two forwards of 16 run before any backward, so that
    at most 8 x 20 + 6 x 4 of 8 x 80 are saved."""
    where = placement.v_shape(1)
    one = equal(where, 8, None).with_stages(
        forward=[10, 30], backward=[5, 15], weight=[5, 15], fused=[10, 30], block_saves=[4, 20]
    )
    value, _, _ = strongest(one, "unpaired passes")
    assert value == 8 * 80 - 8 * 20 - 6 * 4
