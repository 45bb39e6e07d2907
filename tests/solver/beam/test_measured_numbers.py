"""Beam search on numbers as programs measure them: memory times ticks is more than 64 bits hold."""

from __future__ import annotations

from itertools import islice
from threading import Event

import pytest

from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from solver.beam.ranks import Preference
from solver.beam.search import best_order, ended
from solver.beam.tables import tables_of
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.engine.slices import Slice
from solver.engine.subsolvers.beam_schedules import BeamSchedules
from tests.support.counted import counted


def measured(scale: float = 1.0) -> Problem:
    """17 digits a number, room for 3 of 12 activations."""
    return problem_from(
        {
            "devices": 3, "microbatches": 12, "placement": "v-shape",
            "times": {
                "forward": [scale * one for one in (7.0123456789012345, 6.9012345678901234, 7.3456789012345678, 7.1, 6.8, 7.2345678901234567)],
                "backward": 14.234567890123456, "weight": 5.0987654321098765, "transfer": 0.12345678901234567,
            },
            "memory": {"activation": 1.2345678901234567, "capacity": 5.4321098765432109, "freed_by_backward": 0.31234567890123456},
        }
    )  # fmt: skip


def order(problem: Problem) -> list[tuple[int, int, int]]:
    found = ended(best_order(tables_of(problem), Preference(0.0, 1.0, 0.1, 1.5), 20, 2))
    assert found is not None
    return found.moves


def test_the_tables_hold_products_that_64_bits_do_not() -> None:
    tables = tables_of(measured())
    assert float(tables.area.max()) > 2**62
    assert order(measured())


def test_the_part_runs_and_nothing_is_left_out() -> None:
    search = Search(measured(), counted(1), lambda _: None, Event(), ENGINE)
    search.open()
    work = BeamSchedules().work(search)
    next(work)
    for _ in islice(_slices(work, search), 3):
        pass
    assert search.incumbent.timeline is not None
    assert not any("left out" in note or "DEFECT" in note for note in search.incumbent.state.notes)


def _slices(work, search):  # type: ignore[no-untyped-def]
    try:
        while True:
            yield work.send(Slice(search.clock, search.clock.seconds, 1.0, 1.0))
    except StopIteration:
        return


@pytest.mark.parametrize("capacity", [3, None])
def test_activations_that_take_no_memory(capacity: int | None) -> None:
    """The room of a device may be 0 where it holds nothing: 3 of static memory are all that it has."""
    memory = {"activation": 0, "capacity": 3, "static": 3} if capacity else {"activation": 0}
    own = problem_from({"devices": 3, "microbatches": 4, "times": {"forward": 2, "backward": 4}, "memory": memory})
    assert order(own)
