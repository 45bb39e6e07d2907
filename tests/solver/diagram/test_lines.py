"""Diagrams of all orders on lines of devices: the optimum where all times are equal, with neighbours kept together."""

from __future__ import annotations

from fractions import Fraction
from threading import Event

import pytest

from pipesched.problem.problem import Objective
from solver.bounds.analytic.catalogue import certificates
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.device_sets import Trial, trials
from tests.support.certified import assert_proved_and_no_more
from tests.support.makers import problem

EVEN = {"forward": 10, "backward": 10, "weight": 10}
UNEVEN = {"forward": [9, 11, 10, 12, 9, 10], "backward": [10, 9, 11, 10, 12, 9], "weight": 9}


@pytest.mark.parametrize("objective", ["span", "makespan"])
@pytest.mark.parametrize("microbatches", [6, 12, 1000])
def test_what_cp_sat_finds_with_equal_times(microbatches: int, objective: str) -> None:
    """310 and 610 are the optima that CP-SAT proves; analytic bounds grow by 45 a micro-batch."""
    one = problem(4, microbatches, times=EVEN, memory={"capacity": 2}, objective=objective)
    *_, strongest = bounds_of_all_orders(one, Event())
    assert one.in_units(Fraction(strongest.value_ticks)) == 50 * microbatches + 10


def test_the_first_devices_of_a_line_are_kept_together_and_once() -> None:
    one = problem(6, 9, times=UNEVEN, memory={"capacity": 3}, objective="span")
    found = list(bounds_of_all_orders(one, Event()))
    assert_proved_and_no_more(one, found)
    assert found[-1].value_ticks > max(each.value_ticks for each in certificates(one, Objective.SPAN))
    done = dict[Trial, int]()
    stopped = Event()
    assert [*bounds_of_all_orders(one, stopped, done=done)] == found
    stopped.set()
    assert [*bounds_of_all_orders(one, stopped, done=done)] == found and [*bounds_of_all_orders(one, stopped)] == []
    tried = {trial.stages for trial in trials(one, one.placement.chains)}
    assert {(*range(many),) for many in (3, 4, 5, 6)} <= tried
