"""Simulation of an order under other durations: measured ones, or many random samples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.precedence_graph import Graph
from pipesched.simulation.simulator import run_order

Floats = NDArray[np.float64]

# The ticks that what starts as one (a task, or the two of an overlapped block) takes in each sample, given the
# problem's own ticks: an array of one number a sample, or one number for all of them.
TicksOf = Callable[[tuple[Task, ...], int], Floats | float]


@dataclass(frozen=True)
class Reach:
    """The start of each device's first task and the end of its last, in ticks: arrays of shape (devices, samples).

    Both are 0 for a device without tasks.
    """

    first: Floats
    last: Floats

    @property
    def makespan(self) -> Floats:
        """Return an array of the end of the last pass in each sample, in ticks."""
        return np.asarray(self.last.max(axis=0))

    @property
    def span(self) -> Floats:
        """Return an array of the longest time from a device's first pass to its last in each sample, in ticks."""
        return np.asarray((self.last - self.first).max(axis=0))


def run_under(
    problem: Problem, schedule: Schedule, ticks_of: TicksOf, samples: int = 1, not_before: Sequence[float] | None = None
) -> Reach:
    """Simulate an order with each pass as early as possible, under the durations that `ticks_of` returns.

    `ticks_of(tasks, ticks)` gets a task, or the two of an overlapped block, and the problem's own ticks; it returns the
    ticks in each of the `samples`, as an array, or one number for all of them. Precedences and transfer times are the
    problem's. `not_before[d]` keeps device d idle until that tick. Raises `Deadlock` if the order can never run to its
    end, and `BadInput` if a pass appears twice or lacks one that it needs, or an order of tasks is not of the tasks
    that run. One pass over the order serves all samples: work and memory grow with their product.
    """
    graph = Graph(problem, schedule)
    _, sequence = run_order(graph, [0] * problem.devices)
    start = np.zeros((len(graph.tasks), samples))
    end = np.zeros_like(start)
    for device, opening in enumerate(graph.opening):
        start[opening] = not_before[device] if not_before else 0
    for node in sequence:
        for before, lag in graph.waits[node]:
            np.maximum(start[node], end[before] + lag, out=start[node])
        end[node] = start[node] + ticks_of(graph.tasks[node], graph.ticks[node])
    none = np.zeros(samples)
    return Reach(
        first=np.array([start[nodes].min(axis=0) if nodes else none for nodes in graph.opening]),
        last=np.array([end[nodes].max(axis=0) if nodes else none for nodes in graph.closing]),
    )
