"""Dedicated worker: one subsolver with a core of its own, while the others share the remaining cores."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from solver.engine.search import DedicatedSubsolver, Search, Subsolver


class DedicatedWorker:
    """A thread for one subsolver of the engine, the dedicated one, which keeps one core until it ends.

    `begin` starts it, `wait` waits until it has ended, and `close` first ends the search. With a single core, or under
    a deterministic limit, `subsolver` is None and there is no thread: the times at which two threads find results vary
    from run to run.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        alone = search.workers > 1 and not search.clock.counts_work
        self.subsolver = search.engine.dedicated_subsolver if alone else None
        self._running: tuple[ThreadPoolExecutor, Future[None]] | None = None

    def is_for(self, subsolver: Subsolver) -> bool:
        """True if that subsolver runs on this worker."""
        return subsolver == self.subsolver

    def begin(self) -> None:
        """Start the subsolver in a thread; to be called at most once, and only if `subsolver` is not None."""
        assert self.subsolver is not None
        self._search.cores_taken += 1
        pool = ThreadPoolExecutor(1)
        self._running = pool, pool.submit(self._run, self.subsolver)

    def wait(self) -> None:
        """Wait until the subsolver has ended, by itself or as the search is over; at once if it was not begun.

        An error in it becomes a note for the user.
        """
        if self._running is not None:
            pool, found = self._running
            with pool, self._search.incumbent.defects_noted(self.subsolver.name if self.subsolver else None):
                found.result()

    def close(self) -> None:
        """End the search and wait for the subsolver."""
        self._search.end()
        self.wait()

    def _run(self, subsolver: DedicatedSubsolver) -> None:
        try:
            with self._search.times.of(subsolver.name):
                subsolver.alone(self._search)
        finally:
            self._search.cores_taken -= 1
