"""Where full backwards gain, phases that take the cheapest of all modes are left out."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from solver.diagram.certificate import KIND
from solver.engine.engine import ENGINE
from solver.engine.phases.beam_schedules import BeamSchedules
from solver.engine.phases.bounds.all_orders import AllOrders
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.orders_below import OrdersBelow
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Phase, Search
from solver.limits import Limits
from tests.support.makers import problem


def case(fused: int, devices: int = 12) -> Problem:
    return problem(
        devices,
        3 * devices,
        times={"forward": 10, "backward": 10, "weight": 10, "fused": fused},
        memory={"activation": 1, "capacity": devices},
        objective="span",
    )


def begun(of: Problem, proved: int | None = None) -> Search:
    """One micro-batch after the other; with so much proved by a diagram more than by other bounds."""
    engine = replace(ENGINE, bounds=AnalyticBounds(load_only=True), opening=(Sequential(),), phases=())
    search = Search(of, Limits(workers=1, deterministic=1), lambda _: None, Event(), engine)
    search.run()
    if proved is not None:
        search.incumbent.argue(Certificate(KIND, search.incumbent.lower_bound + proved, "Proved.", 0, Diagram((0,), 8)))
    return search


def applying(kind: type[Phase], search: Search) -> list[Phase]:
    return [phase for phase in ENGINE.phases if isinstance(phase, kind) and phase.applies(search)]


def test_beam_search_is_for_open_modes_and_before_crossings() -> None:
    assert applying(BeamSchedules, begun(case(16)))
    assert not applying(BeamSchedules, begun(case(20)))
    kinds = [type(phase) for phase in ENGINE.phases]
    assert kinds.index(BeamSchedules) < kinds.index(AllOrders)


@pytest.mark.parametrize(("fused", "more_proved", "tried"), ((16, 0, False), (16, 1, True), (20, 0, True)))
def test_more_labels_are_tried_where_open_modes_leave_something_to_prove(
    fused: int, more_proved: int, tried: bool
) -> None:
    search = begun(case(fused), more_proved)
    again = [phase for phase in applying(AllOrders, search) if isinstance(phase, AllOrders) and phase.again]
    assert bool(again) is tried
    assert bool(applying(OrdersBelow, search)) is tried
