"""Phase: tabu search over the order of every stream, where memory limits nothing: jobs on machines."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.problem.microbatch_chains import is_job_shop
from solver.engine.kernels import TABU_KERNELS
from solver.engine.search import Search
from solver.tasks.placing import placed_in
from solver.tasks.tabu.search import TabuSearch, limits_nothing


@dataclass(frozen=True)
class CriticalBlocks:
    """A share of the time, on every thread; of counted work so many tries. It makes the last end small.

    Where passes are of one task each, of job shops alone. It waits for its code to be compiled for some of its time.
    """

    share: float = 0.3
    waiting_share: float = 0.5
    most_jobs: int = 2_500
    tries: int = 4
    name: str = "tabu search of critical blocks"

    def applies(self, search: Search) -> bool:
        network = search.problem.network
        known = search.incumbent.timeline is not None and search.clock.left(self.share) > 0
        alike = network.one_task_each and not is_job_shop(search.problem)
        return known and not alike and not network.options and not search.problem.overlaps

    def run(self, search: Search) -> None:
        jobs, clock = jobs_of(search.problem), search.clock
        if len(jobs.jobs) > self.most_jobs or search.incumbent.timeline is None:
            return
        placed = placed_in(jobs, search.incumbent.timeline)
        if placed is None or not limits_nothing(jobs, list(placed.start)):
            return
        until = clock.left() - clock.left(self.share)
        if not clock.counts_work:
            TABU_KERNELS.begin()
            waited = clock.left() - self.waiting_share * clock.left(self.share)
            if not TABU_KERNELS.wait(lambda: search.stop.is_set() or clock.left() <= waited):
                return
        tabu = TabuSearch(jobs, placed.start, search.limits.seed)
        if clock.counts_work:
            for _ in range(self.tries):
                if not search.done() and tabu.step():
                    _offer(search, jobs, tabu)
            return
        self._on_threads(search, jobs, tabu, until)

    def _on_threads(self, search: Search, jobs: Jobs, tabu: TabuSearch, until: float) -> None:
        """One run after the other on each thread, until so much of the time is left."""
        workers = search.limits.workers or os.cpu_count() or 1
        with ThreadPoolExecutor(workers) as pool:
            running: set[Future[bool]] = set()
            try:
                while not search.done() and search.clock.left() > until:
                    running |= {pool.submit(tabu.step) for _ in range(workers - len(running))}
                    done, running = wait(running, 0.1, FIRST_COMPLETED)
                    better = [one.result() for one in done]
                    if any(better):
                        _offer(search, jobs, tabu)
            finally:
                tabu.halt[0] = True
        _offer(search, jobs, tabu)


def _offer(search: Search, jobs: Jobs, tabu: TabuSearch) -> None:
    schedule = schedule_of_starts(jobs, tabu.best, "optimised")
    if schedule is not None:
        search.offer_order(schedule)
