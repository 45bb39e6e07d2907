"""Closes in from both sides at once: neighbourhoods for better schedules, beside refuted values for better bounds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from pipesched.schedule import Schedule
from pipesched.timeline import Timeline
from solver.beside import Beside
from solver.neighbourhoods import OrderSearch
from solver.refuting import Refuted, refutations
from solver.standing import Standing


def can_run_beside(standing: Standing) -> bool:
    """Whether there is a worker for each of the two. Counted work does not tell when either should end."""
    workers = standing.limits.workers or os.cpu_count() or 1
    return workers > 1 and standing.limits.deterministic is None


def anneal(standing: Standing, others: Sequence[Timeline], seconds: float) -> None:
    """Neighbourhoods alone, from the best schedule and a few others."""
    if standing.best is not None and seconds > 0:
        search = OrderSearch(standing.best, others, standing.limits, standing.done)
        search.run(seconds, standing.offer_order)


def refute(standing: Standing) -> None:
    """Refuted values alone, for all that is left of the time."""
    for found in refutations(
        standing.problem, standing.limits, standing.left(), lambda: _open(standing), standing.stop
    ):
        _take(standing, found)
        if standing.done():
            return


def anneal_and_refute(standing: Standing, others: Sequence[Timeline]) -> None:
    """One worker refutes, the others anneal, for all that is left of the time."""
    if standing.best is None:
        return
    halt = Event()
    seconds = standing.left()
    beside = Beside(refutations(standing.problem, standing.limits, seconds, lambda: _open(standing), halt))

    def done() -> bool:
        for found in beside.found():
            _take(standing, found)
        return standing.done()

    workers = (standing.limits.workers or os.cpu_count() or 1) - 1
    try:
        search = OrderSearch(standing.best, others, replace(standing.limits, workers=workers), done)
        search.run(seconds, standing.offer_order)
    finally:
        halt.set()
        beside.join()
    done()


def _open(standing: Standing) -> tuple[int, int]:
    """What is proved by now, and the value below which a schedule is of interest."""
    assert standing.value is not None
    target = standing.limits.target
    return standing.lower_bound, standing.value if target is None else min(standing.value, target + 1)


def _take(standing: Standing, found: Refuted | Schedule) -> None:
    if isinstance(found, Refuted):
        standing.raise_bound(found.value, found.devices)
    else:
        standing.offer_order(found)
