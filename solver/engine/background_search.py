"""Local search in the background, on the cores that the current subsolver does not use."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Event

from solver.engine.clock import BACKGROUND
from solver.engine.search import Search


class BackgroundLocalSearch:
    """A local search on all workers but one, in a thread, which `go_on` starts or continues and `pause` stops.

    It never runs with one worker, nor under a deterministic limit, since its results depend on the run time of others;
    nor where the engine has no `background`, or too little time is left when this is created.
    """

    def __init__(self, search: Search) -> None:
        self._search, self._paused = search, Event()
        self._wanted = search.engine.background and not search.clock.counts_work and search.can_improve_orders
        self._running: tuple[ThreadPoolExecutor, Future[None]] | None = None

    def go_on(self) -> None:
        """Start or continue the search, unless it runs, its kernels are being compiled, or it must not run at all."""
        possible = self._wanted and self._search.workers > 1
        if possible and self._running is None and self._search.compiled(self._search.kernels):
            self._paused.clear()
            pool = ThreadPoolExecutor(1)
            self._running = pool, pool.submit(self._improve)

    def pause(self) -> None:
        """Pause the search and wait until it has stopped; an error in it becomes a note for the user."""
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
