"""The incumbent is one record at every moment: better only, bound and value consistent, whole even if a thread is ended."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random
from threading import Thread

import pytest

from pipesched.deadline import Deadline, asking, within
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from solver.construction.timing import best_times
from solver.engine.clock import Clock
from solver.engine.incumbent.incumbent import Incumbent
from solver.limits import Limits
from tests.support.makers import problem, random_order

ONE = problem(2, 4)
NONE = Certificate("load", 0, "")


def incumbent(one: Problem = ONE) -> Incumbent:
    return Incumbent(one, [NONE], Clock(Limits()), lambda _: None)


def timelines(seed: int) -> Iterator[Timeline]:
    random = Random(seed)
    while True:
        yield best_times(ONE, random_order(ONE, random))


@pytest.mark.meets_defects
def test_what_is_read_is_always_of_one_moment_while_another_thread_writes_and_is_ended() -> None:
    for seed in range(2):
        held = incumbent()

        def work(held: Incumbent = held, seed: int = seed) -> None:
            for timeline, bound in asking(zip(timelines(seed), count(1), strict=False)):
                held.offer(timeline)
                held.claim(bound // 4)
                held.note(str(bound))

        asks = count()
        writer = Thread(target=within, args=(Deadline(2000, clock=lambda asks=asks: next(asks)), work))
        writer.start()
        while writer.is_alive():
            state = held.state
            assert state.value is None or state.lower_bound <= state.value
        state = held.state
        assert state.timeline is not None
        assert state.value == value_of(ONE, state.timeline)
        assert state.lower_bound <= state.value
        assert (state.history[-1].value, state.history[-1].lower_bound) == (state.value, state.lower_bound)
        # Nothing that work left behind keeps others out.
        held.note("after")
        assert held.state.notes[-1] == "after"


@pytest.mark.meets_defects
def test_a_wrong_bound_is_dropped_with_its_kind_and_noted_once() -> None:
    held = incumbent()
    timeline = next(timelines(0))
    value = held.offer(timeline)
    for _ in range(2):
        held.argue(Certificate("wrong", int(value) + 1, "not true"))
    assert held.lower_bound == 0
    assert held.state.distrusted == {"wrong"}
    assert len(held.state.notes) == 1
    held.argue(Certificate("wrong", 1, "of a kind that is distrusted"))
    assert held.lower_bound == 0


@pytest.mark.meets_defects
def test_a_schedule_below_the_bound_drops_every_kind_that_claims_more() -> None:
    held = incumbent()
    timeline = next(timelines(0))
    value = int(value_of(ONE, timeline))
    for number, kind in enumerate(("wrong", "also wrong")):
        held.argue(Certificate(kind, value + 1 + number, ""))
    held.argue(Certificate("right", value - 1, ""))
    held.offer(timeline)
    assert held.state.certificate.kind == "right"
    assert held.state.distrusted == {"wrong", "also wrong"}
    assert held.value == value
