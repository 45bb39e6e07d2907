"""A subsolver with a core of its own: it runs while the others share the remaining cores."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from solver.engine.search import DedicatedSubsolver, Search, Subsolver


class DedicatedWorker:
    """The worker of one dedicated subsolver; the others have one core less until it ends.

    Not with one core, nor under a deterministic limit: its results depend on what the others find.
    """

    def __init__(self, search: Search) -> None:
        self._search = search
        alone = search.workers > 1 and not search.clock.counts_work
        self.subsolver = search.engine.dedicated_subsolver if alone else None
        self._running: tuple[ThreadPoolExecutor, Future[None]] | None = None

    def is_for(self, subsolver: Subsolver) -> bool:
        """True if this is the worker of that subsolver."""
        return subsolver == self.subsolver

    def begin(self) -> None:
        """Once."""
        assert self.subsolver is not None
        self._search.cores_taken += 1
        pool = ThreadPoolExecutor(1)
        self._running = pool, pool.submit(self._run, self.subsolver)

    def wait(self) -> None:
        """Until it has come to its end, or the search is over. A defect that it met is noted."""
        if self._running is not None:
            pool, found = self._running
            with pool, self._search.incumbent.defects_noted(self.subsolver.name if self.subsolver else None):
                found.result()

    def close(self) -> None:
        """End the search, and wait."""
        self._search.end()
        self.wait()

    def _run(self, subsolver: DedicatedSubsolver) -> None:
        try:
            with self._search.times.of(subsolver.name):
                subsolver.alone(self._search)
        finally:
            self._search.cores_taken -= 1
