"""Simulated annealing over the orders of jobs on all streams, compiled, on parallel threads, in rounds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from formulations.jobs.placed_jobs import PlacedJobs
from solver.limits import Limits
from solver.local_search.annealing import Annealer, AnnealingParameters, orders_of
from solver.tasks.job_units import JobUnits
from solver.tasks.placing import placed_at

# High temperatures leave the structure of the first schedule, low ones refine what was found. Each round has one of
# them a thread, and a share of the time.
_ROUNDS = (
    (0.25, (0.5, 0.05, 0.03), (0.3, 0.05, 0.1)),
    (0.3, (0.3, 0.05, 0.1), (0.5, 0.1, 0.03)),
    (0.25, (0.15, 0.03, 0.1), (0.3, 0.05, 0.03)),
    (0.2, (0.08, 0.01, 0.1), (0.15, 0.03, 0.03)),
)
# From so many jobs on a round is too short for high temperatures.
_MANY_JOBS = 6_000
# Moves to measure the speed with, and moves of a round where time is counted so.
_PROBE, _SURE_ROUND = 2_000, 1_000


class TaskOrderSearch:
    """`placed` is the best schedule so far. `ValueError` where memory does not follow from one stream's order."""

    def __init__(self, placed: PlacedJobs, limits: Limits, done: Callable[[], bool]) -> None:
        self.placed, self._limits, self._done = placed, limits, done
        self._workers = limits.workers or os.cpu_count() or 1
        self._halt = np.zeros(1, np.int64)
        self._units = JobUnits(placed)
        self._many = len(placed.start) > _MANY_JOBS

    def run(self, seconds: float, offer: Callable[[PlacedJobs], None]) -> None:
        """Anneal for so many seconds; `offer` gets every schedule that is better."""
        deadline = time.monotonic() + seconds
        rate, seed = self._rate(), self._limits.seed * 1_000_003
        rounds = _ROUNDS[2:] if self._many else _ROUNDS
        with ThreadPoolExecutor(self._workers) as pool:
            for number, (share, *parameters) in enumerate(rounds):
                left = sum(one[0] for one in rounds[number:])
                length = (deadline - time.monotonic()) * share / left
                if self._done() or (self._limits.deterministic is None and length <= 0):
                    return
                moves = _SURE_ROUND if rate is None else max(_PROBE, int(rate * length))
                found = []
                for worker in range(self._workers):
                    heat = AnnealingParameters(*parameters[worker % len(parameters)], filling=0)
                    found.append(pool.submit(self._anneal, heat, moves, seed + number * self._workers + worker))
                try:
                    while wait(found, timeout=0.1).not_done:
                        late = self._limits.deterministic is None and time.monotonic() > deadline
                        self._halt[0] = late or self._done()
                except BaseException:
                    self._halt[0] = True
                    raise
                better = min((one for each in found if (one := each.result())), key=lambda one: one.value, default=None)
                if better is not None and better.value < self.placed.value:
                    self.placed, self._units = better, JobUnits(better)
                    offer(better)

    def _rate(self) -> float | None:
        """Moves a second of one thread; None where they are counted."""
        if self._limits.deterministic is not None:
            return None
        heat = AnnealingParameters(*_ROUNDS[-1][1], filling=0)
        probe = max(100, _PROBE * 1000 // (len(self.placed.start) + 1))
        started = time.monotonic()
        self._anneal(heat, probe, 0)
        return probe / max(1e-3, time.monotonic() - started)

    def _anneal(self, heat: AnnealingParameters, moves: int, seed: int) -> PlacedJobs | None:
        """The best schedule of one run from the best so far; None where its memory is not safe."""
        units, placed = self._units, self.placed
        found = Annealer(units).search(units.orders, units.openings, heat, moves, seed, self._halt)
        if found is None or found[0] >= placed.value:
            return None
        return placed_at(placed.jobs, units.starts(orders_of(found[1])), placed.opening)
