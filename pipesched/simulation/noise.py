"""Robustness under noise: makespan and span of a schedule if the duration of every pass is random."""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p, sqrt
from typing import NamedTuple

import numpy as np

from pipesched.problem.passes import PassKind, Task
from pipesched.problem.problem import Objective
from pipesched.problem.quantities import Ticks
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.sampled_durations import Floats, run_under
from pipesched.simulation.simulator import simulate

# Samples drawn at a time: bounds the memory, and is the same for every schedule, so that all see the same numbers.
BATCH = 250

# A transfer is a task where it occupies a stream, else a lag.
DISTRIBUTION = (
    "log-normal factors of mean 1, independent for every task or block; transfers that occupy no stream as given"
)


class Noise(NamedTuple):
    """Settings of `under_noise`: standard deviation of durations as a share of them, number of samples, and seed."""

    deviation: float
    samples: int
    seed: int


@dataclass(frozen=True)
class Distribution:
    """One figure of a schedule under noise, in ticks: its value without noise (`nominal`), and an array of samples."""

    nominal: Ticks
    samples: Floats

    @property
    def mean(self) -> float:
        return float(self.samples.mean())

    def percentile(self, percent: float) -> float:
        """Return the ticks that `percent` (0 to 100) per cent of the samples do not exceed, interpolated linearly."""
        return float(np.percentile(self.samples, percent))


@dataclass(frozen=True)
class Noisy:
    """The distributions of makespan and span under noise."""

    makespan: Distribution
    span: Distribution

    def of(self, objective: Objective) -> Distribution:
        """Return the distribution of an objective; ValueError for a period, which no finite timeline has."""
        if objective.repeats:
            raise ValueError("a finite timeline has no period")
        return self.span if objective.by_device else self.makespan


def under_noise(timeline: Timeline, noise: float, samples: int, seed: int) -> Noisy:
    """Simulate the order of a timeline `samples` times.

    The duration of each task or block is multiplied by a random factor. Factors are log-normal with mean 1 and relative
    standard deviation `noise`, so that none is negative and the mean work is the problem's. A task has the same factors
    in every schedule of its problem under one seed, so that differences are due to the schedules. A device that the
    timeline delays before its first pass (as optimal schedules for the span do) is delayed until the same tick here.
    """
    problem, reaches = timeline.problem, []
    starts = chosen_starts(timeline)
    for batch, first in enumerate(range(0, samples, BATCH)):
        count = min(BATCH, samples - first)

        def ticks_of(tasks: tuple[Task, ...], ticks: Ticks, batch: int = batch, count: int = count) -> Floats:
            return ticks * factors(tasks[0], noise, count, seed, batch)

        reaches.append(run_under(problem, timeline.schedule, ticks_of, count, starts))
    nominal = measure(timeline)
    return Noisy(
        Distribution(nominal.makespan_ticks, np.concatenate([reach.makespan for reach in reaches])),
        Distribution(nominal.span_ticks, np.concatenate([reach.span for reach in reaches])),
    )


def factors(task: Task, noise: float, count: int, seed: int, batch: int = 0) -> Floats:
    """Return `count` random factors of a task's duration, with mean 1 and standard deviation `noise`.

    They depend only on the task, the seed, and `batch`, the number of the batch of samples that they are for.
    """
    sigma = sqrt(log1p(noise**2))
    return np.random.default_rng([seed, batch, *_number(task)]).lognormal(-(sigma**2) / 2, sigma, count)


def _number(task: Task) -> tuple[int, int, int, int]:
    """Return a task as integers (kind, stage, micro-batch, part), to seed its random numbers."""
    return list(PassKind).index(task.of.kind), task.of.stage, task.of.microbatch, task.part


def chosen_starts(timeline: Timeline) -> list[float]:
    """Return by device the start of its first pass, in ticks, if the timeline delays it.

    0 if it starts as soon as it can.
    """
    soonest = simulate(timeline.problem, timeline.schedule)
    starts = []
    for order in timeline.schedule.orders:
        start = timeline.start(order[0][0]) if order else 0
        starts.append(float(start) if order and start > soonest.start(order[0][0]) else 0.0)
    return starts
