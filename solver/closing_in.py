"""Closes in from both sides at once: neighbourhoods for schedules, beside prices and refuted values for bounds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from threading import Event

from pipesched.certificate import Certificate
from pipesched.schedule import Schedule
from pipesched.timeline import Timeline
from solver.beside import Beside
from solver.interruptible import run_until
from solver.neighbourhoods import OrderSearch
from solver.priced_bounds import priced_bounds
from solver.refuting import Refuted, refutations
from solver.standing import Standing

# Prices gain little after this share of the time.
_PRICES_SHARE = 0.6
# Seconds that the end of a search for bounds is waited for.
_PATIENCE = 1.0


def can_run_beside(standing: Standing) -> bool:
    """Whether there is a worker for each of the two. Counted work does not tell when either should end."""
    workers = standing.limits.workers or os.cpu_count() or 1
    return workers > 1 and standing.limits.deterministic is None


def anneal(standing: Standing, others: Sequence[Timeline], seconds: float, again: bool = False) -> None:
    """Neighbourhoods alone, from the best schedule and a few others; by other chances if it is done `again`."""
    if standing.best is not None and seconds > 0:
        limits = replace(standing.limits, seed=standing.limits.seed + again)
        search = OrderSearch(standing.best, others, limits, standing.done)
        search.run(seconds, standing.offer_order)


def prove(standing: Standing) -> None:
    """Better bounds alone, for all that is left of the time."""
    bounds = _bounds(standing, standing.left(), standing.stop)
    # On a thread of its own, and one step after the other, so that signals are heard and counted work stays the same.
    while not standing.done():
        found = run_until(standing.stop, lambda: next(bounds, None), lambda: None)
        if found is None:
            return
        _take(standing, found)


def anneal_and_prove(standing: Standing, others: Sequence[Timeline]) -> None:
    """One worker looks for better bounds while the others anneal; when it is through, all of them do."""
    if standing.best is None:
        return
    halt = Event()
    seconds = standing.left()
    beside = Beside(_bounds(standing, seconds, halt))

    def done() -> bool:
        for found in beside.found():
            _take(standing, found)
        return standing.done() or beside.over

    workers = (standing.limits.workers or os.cpu_count() or 1) - 1
    try:
        search = OrderSearch(standing.best, others, replace(standing.limits, workers=workers), done)
        search.run(seconds, standing.offer_order)
    finally:
        halt.set()
        # A linear program that is under way cannot be interrupted; what it would give is not waited for.
        beside.join(_PATIENCE)
    done()
    if not standing.done():
        anneal(standing, others, standing.left(), again=True)


def _bounds(standing: Standing, seconds: float, halt: Event) -> Iterator[Certificate | Refuted | Schedule]:
    """First by prices, then by refuting values."""
    started = time.monotonic()
    proved, below = _open(standing)
    # Counted work must not depend on the clock.
    share = _PRICES_SHARE * seconds if standing.limits.deterministic is None else inf
    yield from priced_bounds(standing.problem, proved, below, share, halt)
    left = seconds - (time.monotonic() - started)
    yield from refutations(standing.problem, standing.limits, left, lambda: _open(standing), halt)


def _open(standing: Standing) -> tuple[int, int]:
    """What is proved by now, and the value below which a schedule is of interest."""
    assert standing.value is not None
    target = standing.limits.target
    return standing.lower_bound, standing.value if target is None else min(standing.value, target + 1)


def _take(standing: Standing, found: Certificate | Refuted | Schedule) -> None:
    if isinstance(found, Certificate):
        standing.argue(found)
    elif isinstance(found, Refuted):
        standing.raise_bound(found.value, found.devices)
    else:
        standing.offer_order(found)
