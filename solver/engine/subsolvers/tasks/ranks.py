"""Subsolver for passes of several tasks: anneal the ranks by which serial generation makes a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.quantities import JobId, TimeSteps
from formulations.jobs.schedule_of_starts import schedule_of_starts
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned
from solver.tasks.placing import placed_in
from solver.tasks.rank_search import RankSearch, Serial


@dataclass(frozen=True)
@tunable
class TaskRanks:
    """Simulated annealing over the ranks of tasks that minimises the makespan, also if the objective is the span.

    Each slice starts from the incumbent on every worker, and its temperature falls to zero by the end of the slice. The
    first `temperature` is a share of the value; where work is counted, a slice has `tries` tries.
    """

    tries: int = tuned(200, "tries of counted work", 1, 100_000)
    temperature: float = tuned(0.005, "of the value, at first", 1e-4, 1)
    name: str = "annealing of tasks"
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.problem.view is None and not search.problem.network.has_activation_modes

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        slice_ = yield
        jobs, seed = jobs_of(search.problem), search.limits.seed * 1_000_003
        workers = 1 if search.clock.counts_work else search.workers
        while True:
            timeline = search.incumbent.timeline
            placed = None if timeline is None else placed_in(jobs, timeline)
            if placed is None:
                return
            starts = placed.start
            try:
                serial = Serial(placed.jobs, starts)
            except ValueError:
                return
            with ThreadPoolExecutor(workers) as pool:
                anneal = partial(self._anneal, search, slice_, serial, starts)
                found = sorted(pool.map(anneal, range(seed, seed + workers)), key=lambda one: one[0])
            for _, better in found:
                schedule = schedule_of_starts(jobs, better, "optimised")
                if schedule is not None:
                    search.offer_order(schedule)
                    break
            seed += workers
            slice_ = yield

    def _anneal(
        self, search: Search, slice_: Slice, serial: Serial, starts: Mapping[JobId, TimeSteps], seed: int
    ) -> tuple[TimeSteps, dict[JobId, TimeSteps]]:
        """Anneal from `starts` (steps by job); return the latest end and the starts of the best schedule, in steps.

        They are those of `starts` if no schedule ends sooner. `seed` is that of the random numbers. Threads may share
        `serial`, which stays as it is.
        """
        own = serial.twin()
        ranks = RankSearch(own, starts, seed)
        for temperature in _falling_temperatures(search, slice_, self.tries, self.temperature):
            ranks.step(temperature)
        return ranks.ends, serial.starts(ranks.best)


def _falling_temperatures(search: Search, slice_: Slice, tries: int, first: float) -> Iterator[float]:
    """Yield a temperature for each try of simulated annealing, falling linearly from `first` to 0 over the slice.

    Where work is counted, it falls over `tries` tries instead. The iterator ends early when the search is done.
    """
    whole, tried = slice_.left(), 0
    while not search.done():
        gone = tried / tries if search.clock.counts_work else 1 - slice_.left() / whole if whole else 1.0
        if gone >= 1:
            return
        tried += 1
        yield first * (1 - gone)
