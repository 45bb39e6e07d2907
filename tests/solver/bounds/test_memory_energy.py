"""Memory over time: what is held at the last forward, where B gives back a part of the activation, all or none of it."""

from __future__ import annotations

import pytest

from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.catalogue import certificates
from tests.support.columns import Costs, Memory, build


def two_devices(m: int, costs: Costs, memory: Memory) -> Problem:
    return build(placement.linear(2), m, costs, memory, Objective.SPAN)


# Where W is long and B gives back most of an activation; the optimum was found by trying every order.
LONG_WEIGHTS = (
    (
        two_devices(3, Costs((5, 2), (5, 1), (1, 48), (3, 53), (100, 0)), Memory((8, 8), (4, 6), (29, 12))),
        221,
    ),
    (two_devices(4, Costs((1, 1), (1, 1), (2, 59), (3, 60), (300, 20)), Memory((5, 5), (4, 4), (1000, 8))), 615),
)


@pytest.mark.parametrize(("problem", "optimum"), LONG_WEIGHTS)
def test_what_waits_for_a_long_weight_pass_counts_by_what_it_still_holds(problem: Problem, optimum: int) -> None:
    assert certificates(problem, Objective.SPAN)[0].value_ticks == optimum
