"""Subsolver: tabu search over the order of every stream, for problems in which memory is no constraint (job shops)."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from solver.engine.kernels import TABU_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned
from solver.tasks.placing import placed_in
from solver.tasks.tabu.search import TabuSearch, limits_nothing


@dataclass(frozen=True)
@tunable
class CriticalBlocks:
    """Tabu search that minimises the makespan, on every worker; a slice of counted work has a number of runs.

    That number is `counted_runs`. It does not run on more than `most_jobs` jobs.
    """

    most_jobs: int = tuned(5_000, "jobs, beyond which it does not run", 100, 10**6)
    counted_runs: int = tuned(6, "runs in a slice of counted work", 1, 1000)
    name: str = "tabu search of critical blocks"
    parallel: bool = True
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        network = search.problem.network
        return not (network.has_activation_modes or network.blocks or network.occupies_several)

    def kernels(self, _: Search) -> Kernels:
        return TABU_KERNELS

    def work(self, search: Search) -> Work:
        slice_ = yield
        jobs = jobs_of(search.problem)
        if len(jobs.jobs) > self.most_jobs or search.incumbent.timeline is None:
            return
        placed = placed_in(jobs, search.incumbent.timeline)
        if placed is None or not limits_nothing(jobs, list(placed.start)):
            return
        tabu = TabuSearch(placed.jobs, placed.start, search.limits.seed)
        while True:
            if search.clock.counts_work:
                for _ in range(self.counted_runs):
                    if not search.done() and tabu.step():
                        _offer(search, jobs, tabu)
            else:
                _on_threads(search, jobs, tabu, slice_)
            slice_ = yield


def _on_threads(search: Search, jobs: Jobs, tabu: TabuSearch, slice_: Slice) -> None:
    """Run tabu search on each worker's thread, again and again until the slice is over; offer the best schedule."""
    workers = search.workers
    tabu.halt[0] = False
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[bool]] = set()
        try:
            while not search.done() and not slice_.over():
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
