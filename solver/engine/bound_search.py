"""The search for destructive lower bounds, and what is done with what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from pipesched.errors import Disagreement
from pipesched.problem.attainable_spans import Value, largest_denominator, least_above
from pipesched.schedule.schedule import Schedule
from solver.backends.interruptible import run_within
from solver.bounds.destructive_bound import RefutedValue, destructive_bounds
from solver.engine.part_times import DESTRUCTIVE
from solver.engine.search import Search

_Found = RefutedValue | Schedule | Disagreement


def bounds(search: Search, seconds: float, halt: Event) -> Iterator[_Found]:
    """What the search for bounds finds; a defect of it is handed over too, and ends it."""
    if not search.engine.destructive:
        return
    try:
        refuted = destructive_bounds(search.problem, search.limits, seconds, lambda: _open(search), halt)
        yield from search.parts.of_each(DESTRUCTIVE, refuted)
    except Disagreement as defect:
        yield defect


def refute(search: Search, seconds: float) -> None:
    """Destructive bounds alone: fractions of a tick are left to these where the exact model has proved whole ticks."""
    found = destructive_bounds(search.problem, search.limits, seconds, lambda: _open(search), search.stop, every=True)
    take_all(search, found)


def take_all(search: Search, found: Iterator[_Found]) -> None:
    """All that is found until the search is done."""
    # On a thread of its own, and one step after the other, so that signals are heard and counted work stays the same.
    while not search.done():
        one = run_within(search.clock.allowed(), search.stop, lambda: next(found, None))
        if one is None:
            return
        take(search, one)


def take(search: Search, found: _Found) -> None:
    """Claim a bound, offer a schedule, or note a defect."""
    if isinstance(found, Disagreement):
        search.incumbent.distrust(found)
    elif isinstance(found, RefutedValue):
        search.incumbent.claim(found.value, found.devices)
    else:
        search.offer_order(found)


def _open(search: Search) -> tuple[Value, Value]:
    """The lower bound by now, and the value below which a schedule is of interest."""
    state, target = search.incumbent.state, search.limits.target
    assert state.value is not None
    if target is None:
        return state.lower_bound, state.value
    return state.lower_bound, min(state.value, least_above(target, largest_denominator(search.problem)))
