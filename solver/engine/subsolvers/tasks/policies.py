"""Subsolver for passes of several tasks: search for the policy by which a free stream chooses its next task."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned
from solver.tasks.policy.dispatcher import Dispatcher
from solver.tasks.policy.policy import EAGER, STEADY
from solver.tasks.policy.search import PolicySearch
from solver.tasks.rank_search import Serial
from solver.tasks.saving_modes import saving_modes


@dataclass(frozen=True)
@tunable
class TaskPolicies:
    """Search dispatching policies on every worker from two starts, in rounds that continue from the best.

    Both starts are searched, since either may lead to a far better policy, whichever is better itself. With counted
    work each round has a fixed number of tries. These are `tries`, in each of the `rounds` of a slice.
    """

    rounds: int = tuned(3, "rounds of counted work", 1, 100)
    tries: int = tuned(3, "tries a round of counted work", 1, 1000)
    name: str = "policies of dispatching"
    parallel: bool = True
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        network = search.problem.network
        return search.problem.view is None and not (network.blocks or network.occupies_several)

    def kernels(self, search: Search) -> Kernels:
        return search.kernels

    def work(self, search: Search) -> Work:
        slice_ = yield
        jobs, seed = jobs_of(search.problem), search.limits.seed * 1_000_003
        try:
            dispatchers = [Dispatcher(Serial(jobs, *running)) for running in saving_modes(jobs)]
        except ValueError:
            return
        workers = 1 if search.clock.counts_work else search.workers
        searches = [
            [PolicySearch(dispatchers, start, seed + worker) for start in (STEADY, EAGER)] for worker in range(workers)
        ]
        every, known = [one for own in searches for one in own], None
        while True:
            for number in range(self.rounds):
                self._climb(search, searches, slice_, slice_.left() / (self.rounds - number))
                for one in every:
                    one.go_on_from(every)
                first, schedule = min(every, key=lambda one: inf if one.ends is None else one.ends), None
                if first.best is not None and first.ends != known:
                    starts = first.dispatcher.serial.starts(first.best)
                    known, schedule = first.ends, schedule_of_starts(jobs, starts, "optimised")
                if schedule is not None:
                    search.start_from(schedule)
                if search.done():
                    break
            slice_ = yield

    def _climb(self, search: Search, searches: Sequence[Sequence[PolicySearch]], slice_: Slice, seconds: float) -> None:
        """Run each row of searches in a thread of its own, its members in turn, for `seconds` or counted tries."""
        counted, until = search.clock.counts_work, max(0.0, slice_.left() - seconds)

        def climb(own: Sequence[PolicySearch]) -> None:
            tried = 0
            while not search.done() and (tried < self.tries if counted else slice_.left() > until):
                own[tried % len(own)].step()
                tried += 1

        with ThreadPoolExecutor(len(searches)) as pool:
            list(pool.map(climb, searches))
