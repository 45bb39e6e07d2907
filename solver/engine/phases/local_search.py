"""Phases: local search from the best schedules, with a worker that looks for lower bounds meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass
from threading import Event

from formulations.variables.literal_count import literal_count
from pipesched.results.gap import gap
from solver.backends.background import BackgroundIterator
from solver.engine.bound_search import bounds, take
from solver.engine.search import Search
from solver.engine.tuning import LOCAL_SEARCH_SECONDS_A_PASS

_NOT_COMPILED = "local search waited for its code to be compiled, as on a first run: the same solve may now find more"


@dataclass(frozen=True)
class LocalSearch:
    """Annealing and large-neighbourhood search from the best schedule and a few others.

    With a gap above `near` a worker looks for a better bound meanwhile, if there is another; below it what is missing
    is more often the schedule. Where none does, `left_share` of the time is left for that, or for CP-SAT where the
    literals are not too many for it to find much; or half of what is left by then, if that is less.
    """

    left_share: float = 0.35
    near: float = 0.002
    many_literals: int = 20_000
    patience: float = 1.0  # seconds that the end of the search for bounds is waited for
    waiting_share: float = 0.5  # of the time left, for its code to be compiled
    name: str = "local search"

    def applies(self, search: Search) -> bool:
        return search.incumbent.value is not None and _can_begin(search, self.waiting_share)

    def run(self, search: Search) -> None:
        state = search.incumbent.state
        assert state.value is not None
        far = search.engine.raise_bounds and gap(state.value, state.lower_bound) > self.near
        if far and _can_share(search):
            self.with_bounds(search)
            return
        few = literal_count(search.problem) <= self.many_literals
        left = search.clock.left()
        improve_orders(search, max(left / 2, left - search.clock.share(self.left_share)) if far or few else left)

    def with_bounds(self, search: Search) -> None:
        """One worker looks for better bounds while the others improve schedules; when it is through, all of them do."""
        halt, seconds = Event(), search.clock.left()
        background = BackgroundIterator(bounds(search, seconds, halt))

        def done() -> bool:
            for found in background.found():
                take(search, found)
            return search.done() or background.over

        try:
            search.improve_orders(seconds, _workers(search) - 1, done)
        finally:
            halt.set()
            background.end(max(0.0, min(self.patience, search.clock.left())))
        done()
        if not search.done():
            improve_orders(search, search.clock.left())


@dataclass(frozen=True)
class LocalSearchAgain:
    """For the time left where the phases before were through early. Counted work has none left over."""

    name: str = "local search"

    def applies(self, search: Search) -> bool:
        return not search.clock.counts_work and _can_begin(search)

    def run(self, search: Search) -> None:
        improve_orders(search, search.clock.left())


def improve_orders(search: Search, seconds: float) -> None:
    """Local search alone."""
    if seconds > _seconds_to_begin(search):
        search.improve_orders(seconds, _workers(search), search.done)


def _can_begin(search: Search, share: float = 1.0) -> bool:
    """Whether there is time for a first move, and the code is compiled, or is so in this share of the time left."""
    if search.clock.allowed() <= _seconds_to_begin(search):
        return False
    ready = search.kernels_ready(share)
    if not ready:
        search.incumbent.note(_NOT_COMPILED)
    return ready and search.clock.allowed() > _seconds_to_begin(search)


def _seconds_to_begin(search: Search) -> float:
    return 0.0 if search.clock.counts_work else search.passes * LOCAL_SEARCH_SECONDS_A_PASS


def _can_share(search: Search) -> bool:
    """Whether there is a worker for each of the two. Counted work does not tell when either should end."""
    return _workers(search) > 1 and not search.clock.counts_work


def _workers(search: Search) -> int:
    return search.limits.workers or os.cpu_count() or 1
