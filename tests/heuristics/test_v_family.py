"""The V family, figure by figure: ZBV, V-Half and V-Min are the published ones, and the block between them is sound."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from heuristics.building.v_blocks import V_HALF, V_MIN, V_TWO_THIRDS, V_ZB, v_block
from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.heuristics.test_every_heuristic import alike, uneven
from tests.support.daily import daily

# F, B, W, transfer of one chunk in microseconds, p=16: the profile of the zero-bubble repository for each m,
# and the bubble rates of the span that its generators' orders have (arXiv 2405.15362).
PROFILE = {48: (14407, 14380, 9676, 1610), 64: (14412, 14393, 9688, 1621), 128: (14316, 14306, 9639, 1619)}
PUBLISHED = {
    "zbv": {48: 0.0697, 64: 0.0533, 128: 0.0274},
    "v-half": {48: 0.1847, 64: 0.1453, 128: 0.0784},
    "v-min": {48: 0.3300, 64: 0.3008, 128: 0.2512},
}
UNIT = (1, 1, 1, 0)


def v_problem(p: int, m: int, f: int, b: int, w: int, transfer: int) -> Problem:
    one = alike(placement.v_shape(p), m, f, b, w).with_stages(transfer=(transfer,) * 2 * p)
    return replace(one, objective=Objective.SPAN)


def simulated_and_validated(problem: Problem, schedule: Schedule) -> Metrics:
    timeline = simulate(problem, schedule)
    assert [v for v in validate(timeline) if v.rule != "memory"] == []
    return measure(timeline)


def run(problem: Problem, name: str) -> Metrics:
    return simulated_and_validated(problem, HEURISTICS[name].order(problem))


@pytest.mark.parametrize(("name", "m"), daily([(name, m) for name, rates in PUBLISHED.items() for m in rates], 2))
def test_published_bubble_rate(name: str, m: int) -> None:
    found = run(v_problem(16, m, *PROFILE[m]), name)
    assert found.bubble(Objective.SPAN) == pytest.approx(PUBLISHED[name][m], abs=5e-5)


@pytest.mark.parametrize("name", ("v-half", "v-min"))
def test_orders_of_the_blocks_ignore_times_and_zbv_does_not(name: str) -> None:
    unit, real = v_problem(8, 24, *UNIT), v_problem(8, 24, *PROFILE[48])
    assert HEURISTICS[name].order(unit).orders == HEURISTICS[name].order(real).orders
    assert simulated_and_validated(real, HEURISTICS["zbv"].order(unit)).span_ticks > run(real, "zbv").span


@pytest.mark.parametrize("p", (4, 5, 6))
@pytest.mark.parametrize("down", daily(range(1, 7), 2))
def test_every_pair_of_offsets_is_sound_or_refused(p: int, down: int) -> None:
    """From 4 devices on, passes meet whatever the waits exactly where the sum is 1 or 5 modulo the period."""
    for up in range(1, 7):
        problem = uneven(placement.v_shape(p), 2 * p, Random(10 * down + up))
        if (down + up) % 6 in (1, 5):
            with pytest.raises(DoesNotApply, match=f"offsets {down} and {up}"):
                v_block(problem, "one", (down, up))
        else:
            simulated_and_validated(problem, v_block(problem, "one", (down, up)))


def test_v_block_takes_the_roomiest_block_that_fits() -> None:
    p, m = 8, 24
    problem = v_problem(p, m, *UNIT)
    for capacity, offsets in ((16, V_ZB), (15, V_TWO_THIRDS), (12, V_TWO_THIRDS), (11, V_HALF), (9, V_MIN), (5, V_MIN)):
        tight = problem.with_room((4 * capacity,) * p)
        assert HEURISTICS["v-block"].order(tight).orders == v_block(problem, "", offsets).orders
    assert HEURISTICS["v-block"].order(problem).orders == v_block(problem, "", V_ZB).orders
