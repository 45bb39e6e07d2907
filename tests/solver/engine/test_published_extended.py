"""Published schedules of few micro-batches, extended to very many of them."""

from __future__ import annotations

import pytest

from pipesched.results.solution import Solution, Status
from pipesched.validation.validator import validate
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.published_extended import PublishedExtended
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem

ENGINE = Engine(AnalyticBounds(), (PublishedExtended(),), (), Search.solution, raise_bounds=False)


def found(microbatches: int, capacity: int, placement: str = "v-shape") -> Solution:
    """Of 6 devices; times as those of GPT, whose weight passes take half as long as its forwards."""
    times = {"forward": 18.5, "backward": 18, "weight": 9.3, "transfer": 0.6}
    memory = {"activation": 1, "capacity": capacity}
    one = problem(6, microbatches, placement=placement, times=times, memory=memory, objective="span")
    return solve(one, Limits(workers=1, deterministic=1), engine=ENGINE)


@pytest.mark.parametrize(("capacity", "name"), [(12, "zbv"), (8, "v-half"), (6, "v-min")])
def test_the_roomiest_v_that_fits_is_extended(capacity: int, name: str) -> None:
    one = found(700, capacity)
    assert one.timeline is not None
    assert not validate(one.timeline)
    assert any(moment.phase.startswith(f"{name} of ") for moment in one.history)
    assert one.gap is not None and one.gap < 0.2


def test_one_that_meets_the_bound_ends_the_search_with_a_note() -> None:
    one = found(700, 12)
    assert one.status is Status.OPTIMAL
    assert any("with its middle repeated" in note for note in one.notes)
    assert not any("with its middle repeated" in note for note in found(700, 6).notes)


@pytest.mark.parametrize(("capacity", "name"), [(6, "zb-h1"), (10, "zb-h1"), (11, "zb-h2")])
def test_a_line_of_stages_has_the_handcrafted_ones(capacity: int, name: str) -> None:
    one = found(1400, capacity, "linear")
    assert one.gap is not None and one.gap < 0.01
    assert next(moment.phase for moment in one.history if " of " in moment.phase and moment.value).startswith(name)


def test_problems_of_fewer_passes_are_left_alone() -> None:
    assert found(100, 12).timeline is None
