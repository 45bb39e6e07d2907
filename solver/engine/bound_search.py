"""The search for lower bounds: Lagrangian bounds, then destructive ones, and what is done with what they find."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import ceil, inf
from threading import Event

from pipesched.errors import Disagreement
from pipesched.problem.attainable_spans import Value, largest_denominator, least_above
from pipesched.results.certificate import Certificate
from pipesched.schedule.schedule import Schedule
from solver.backends.interruptible import run_within
from solver.bounds.destructive_bound import RefutedValue, destructive_bounds
from solver.bounds.lagrangian.bound import lagrangian_bounds
from solver.engine.part_times import DESTRUCTIVE, LAGRANGIAN
from solver.engine.search import Search
from solver.engine.tuning import LAGRANGIAN_SHARE

_Found = Certificate | RefutedValue | Schedule | Disagreement


def bounds(search: Search, seconds: float, halt: Event) -> Iterator[_Found]:
    """What the search for bounds finds; a defect of it is handed over too, and ends it."""
    try:
        yield from _sound_bounds(search, seconds, halt)
    except Disagreement as defect:
        yield defect


def _sound_bounds(search: Search, seconds: float, halt: Event) -> Iterator[_Found]:
    started = time.monotonic()
    proved, below = _open(search)
    share = inf if search.clock.counts_work else LAGRANGIAN_SHARE * seconds
    if search.engine.lagrangian:
        found = lagrangian_bounds(search.problem, proved, ceil(below), share, halt)
        yield from search.parts.of_each(LAGRANGIAN, found)
    if search.engine.destructive:
        left = seconds - (time.monotonic() - started)
        refuted = destructive_bounds(search.problem, search.limits, left, lambda: _open(search), halt)
        yield from search.parts.of_each(DESTRUCTIVE, refuted)


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
    elif isinstance(found, Certificate):
        search.incumbent.argue(found)
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
