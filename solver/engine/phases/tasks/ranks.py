"""Phases for passes of several tasks: serial generation from ranks of tasks, and simulated annealing over the ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.jobs.schedule_of_starts import schedule_of_starts
from pipesched.schedule.metrics import measure
from solver.engine.cooling import falling_temperatures
from solver.engine.search import Search
from solver.tasks.job_graph import with_modes
from solver.tasks.placing import placed_in
from solver.tasks.rank_search import Ranks, RankSearch, Serial
from solver.tasks.whole_passes import task_ranks

# How far micro-batches are apart, and how much later weight tasks come up: see `Serial.by_microbatch`.
_APART, _LATER = (0.4, 0.5, 0.6), (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class SerialSchedules:
    """First schedules: micro-batch by micro-batch, and in the order of published ones, also where those do not fit.

    `published` of them, the shortest first. Of so many passes to time and judge one takes seconds: none where one
    is known.
    """

    published: int = 4
    many_passes: int = 4_000
    waiting_share: float = 0.2
    name: str = "serial generation of tasks"

    def applies(self, search: Search) -> bool:
        few = search.passes <= self.many_passes or search.incumbent.timeline is None
        return few and not search.problem.network.options

    def run(self, search: Search) -> None:
        if not search.kernels_ready(self.waiting_share):
            return
        jobs = jobs_of(search.problem)
        try:
            serial = Serial(jobs, with_modes(jobs, fused=False))
        except ValueError:
            return
        found = (serial.run(ranks) for ranks in self._ranks(search, serial))
        best = min((one for one in found if one is not None), key=lambda one: one[0], default=None)
        schedule = None if best is None else schedule_of_starts(jobs, serial.starts(best[1]), "optimised")
        if schedule is not None:
            search.start_from(schedule)

    def _ranks(self, search: Search, serial: Serial) -> Iterator[Ranks]:
        yield from (serial.by_microbatch(apart, later) for apart in _APART for later in _LATER)
        timelines = [one.timeline for one in search.candidates if one.timeline is not None]
        for timeline in sorted(timelines, key=lambda one: measure(one).makespan)[: self.published]:
            yield np.array(task_ranks(timeline, [serial.jobs.jobs[n].task for n in serial.running]))


@dataclass(frozen=True)
class TaskRanks:
    """A share of the time, less and less hot, on every thread; of counted work so many tries.

    Where memory has a limit, nothing is justified, and the orders of streams are better annealed themselves: it then
    takes `limited_share`. With so many jobs that is too slow, and `many_share` leaves time to judge what is found. What
    it makes small is the last end of all, under the span too. It waits for its code to be compiled.
    """

    share: float = 0.5
    many_share: float = 0.35
    limited_share: float = 0.1
    many_jobs: int = 6_000
    tries: int = 100
    temperature: float = 0.002
    waiting_share: float = 0.5
    name: str = "annealing of tasks"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is not None and not search.problem.network.options

    def run(self, search: Search) -> None:
        if not search.kernels_ready(self.waiting_share):
            return
        timeline = search.incumbent.timeline
        assert timeline is not None
        jobs = jobs_of(search.problem)
        placed = placed_in(jobs, timeline)
        if placed is None:
            return
        starts = placed.start
        limits = search.limits
        many = len(starts) >= self.many_jobs
        limited = any(room is not None for room in jobs.room)
        share = self.limited_share if limited else self.share
        if many and not search.clock.counts_work:
            share = min(self.many_share, search.clock.left() / search.limits.seconds / 2)
        workers = 1 if search.clock.counts_work else limits.workers or os.cpu_count() or 1

        try:
            serial = Serial(jobs, starts)
        except ValueError:
            return

        def anneal(worker: int) -> tuple[int, dict[int, int]]:
            own = serial.twin()
            ranks = RankSearch(own, starts, limits.seed * 1_000_003 + worker)
            hot = self.temperature / 10 if many else self.temperature
            for temperature in falling_temperatures(search, share, self.tries, hot):
                ranks.step(temperature)
            return ranks.ends, serial.starts(ranks.best)

        with ThreadPoolExecutor(workers) as pool:
            found = sorted(pool.map(anneal, range(workers)), key=lambda one: one[0])
        for _, better in found:
            schedule = schedule_of_starts(jobs, better, "optimised")
            if schedule is not None:
                search.offer_order(schedule)
                return
