"""Phase for passes of several tasks: a search for the policy by which free streams choose their next task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.problem.problem import Problem
from solver.engine.search import Search
from solver.tasks.policy.dispatcher import Dispatcher
from solver.tasks.policy.saving import ways_to_run
from solver.tasks.policy.search import PolicySearch
from solver.tasks.rank_search import Serial


@dataclass(frozen=True)
class TaskPolicies:
    """A share of the time, on every thread, in rounds that go on from the best so far; of counted work so many tries.

    With so many tasks other searches come to little, and it has `many_share`. It waits for its code to be compiled.
    """

    share: float = 0.05
    many_share: float = 0.6
    many_tasks: int = 6_000
    rounds: int = 4
    tries: int = 10
    waiting_share: float = 0.5
    name: str = "policies of dispatching"

    def applies(self, search: Search) -> bool:
        problem = search.problem
        return not problem.overlaps and self._share_of(problem) > 0

    def _share_of(self, problem: Problem) -> float:
        network = problem.network
        tasks = sum(len(own) * len(network.numbers[of]) for of, own in network.tasks.items())
        return self.many_share if tasks >= self.many_tasks else self.share

    def run(self, search: Search) -> None:
        if not search.kernels_ready(self.waiting_share):
            return
        jobs, clock, limits = jobs_of(search.problem), search.clock, search.limits
        try:
            dispatchers = [Dispatcher(Serial(jobs, *running)) for running in ways_to_run(jobs)]
        except ValueError:
            return
        workers = 1 if clock.counts_work else limits.workers or os.cpu_count() or 1
        searches = [PolicySearch(dispatchers, limits.seed * 1_000_003 + worker) for worker in range(workers)]
        length, known = clock.left(self._share_of(search.problem)) / self.rounds, None
        for _ in range(self.rounds):
            self._climb(search, searches, clock.seconds + length)
            for one in searches:
                one.go_on_from(searches)
            best = searches[0].best
            schedule = None
            if best is not None and searches[0].ends != known:
                starts = searches[0].dispatcher.serial.starts(best)
                known, schedule = searches[0].ends, schedule_of_starts(jobs, starts, "optimised")
            if schedule is not None:
                search.start_from(schedule)
            if search.done():
                return

    def _climb(self, search: Search, searches: Sequence[PolicySearch], until: float) -> None:
        """Each search on a thread of its own."""
        clock = search.clock

        def climb(own: PolicySearch) -> None:
            tried = 0
            while not search.done() and (tried < self.tries if clock.counts_work else clock.seconds < until):
                own.step()
                tried += 1

        with ThreadPoolExecutor(len(searches)) as pool:
            list(pool.map(climb, searches))
