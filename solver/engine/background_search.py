"""Background local search on the other cores while a subsolver uses one."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event

from solver.engine.clock import BACKGROUND
from solver.engine.search import Search


class BackgroundLocalSearch:
    """A local search that can be paused and continued.

    Not with one worker, nor under a deterministic limit, since its results depend on how long others take.
    """

    def __init__(self, search: Search) -> None:
        self._search, self._paused = search, Event()
        self._wanted = search.engine.background and not search.clock.counts_work and search.can_improve_orders
        self._running: tuple[ThreadPoolExecutor, Future[None]] | None = None

    def go_on(self) -> None:
        """Begin, unless it is under way or its code is being compiled."""
        possible = self._wanted and self._search.workers > 1
        if possible and self._running is None and self._search.compiled(self._search.kernels):
            self._paused.clear()
            pool = ThreadPoolExecutor(1)
            self._running = pool, pool.submit(self._improve)

    def pause(self) -> None:
        """Wait for its end. A defect that it met is noted."""
        if self._running is None:
            return
        pool, found = self._running
        self._running = None
        self._paused.set()
        with pool, self._search.incumbent.defects_noted(BACKGROUND):
            found.result()

    def _improve(self) -> None:
        search = self._search
        limits = replace(search.limits, workers=search.workers - 1, seconds=search.clock.left())
        offer = partial(search.offer_order, by=BACKGROUND)
        with search.times.of(BACKGROUND):
            search.improve_orders(limits, lambda: self._paused.is_set() or search.done(), offer)
