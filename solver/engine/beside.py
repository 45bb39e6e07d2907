"""Local search on the other cores while a part of the search uses one."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event

from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from solver.engine.clock import BESIDE
from solver.engine.search import Search


class LocalSearchBeside:
    """It goes on from where it paused; `gained` are the ticks by which it has improved the value.

    Not with one worker, nor where work is counted instead of time, since what is found depends on how long others take.
    """

    def __init__(self, search: Search) -> None:
        self.gained = 0.0
        self._search, self._paused = search, Event()
        self._workers = (search.limits.workers or os.cpu_count() or 1) - 1
        wanted = search.engine.beside and not search.clock.counts_work and search.can_improve_orders
        self._possible = wanted and self._workers >= 1
        self._running: tuple[ThreadPoolExecutor, Future[None]] | None = None

    def go_on(self) -> None:
        """Begin, unless it is under way or its code is being compiled."""
        if self._possible and self._running is None and self._search.compiled(self._search.kernels):
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
        with pool, self._search.incumbent.defects_noted():
            found.result()

    def _improve(self) -> None:
        search = self._search
        limits = replace(search.limits, workers=self._workers, seconds=search.clock.left())
        with search.times.of(BESIDE):
            search.improve_orders(limits, lambda: self._paused.is_set() or search.done(), self._offer)

    def _offer(self, schedule: Schedule) -> Timeline | None:
        before = self._search.incumbent.value
        timeline = self._search.offer_order(schedule)
        after = self._search.incumbent.value
        if timeline is not None and before is not None and after is not None:
            self.gained += float(before - after)
        return timeline
