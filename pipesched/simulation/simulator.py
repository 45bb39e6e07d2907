"""The simulator: the start of every task of a schedule, as early as possible, exact in integer ticks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.arguments import A_PROBLEM, refuse_other
from pipesched.errors import Deadlock
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.longest_path import Numbers, earliest, latest
from pipesched.simulation.precedence_graph import Graph


def simulate(problem: Problem, schedule: Schedule, not_before: Sequence[Ticks] | None = None) -> Timeline:
    """Return the timeline of an order with every task as early as possible.

    `not_before[d]` keeps device d idle until that tick. Raises `Deadlock`, which names the cycle of waits, if the order
    can never run to its end, and `BadInput` if an argument has another type, a pass appears twice or lacks one that it
    needs, or an order of tasks is not of the tasks that run. A missing pass that no other needs is no error here. Takes
    time linear in the number of passes.
    """
    refuse_other("simulate", problem, Problem, A_PROBLEM)
    refuse_other("simulate: schedule", schedule, Schedule, "a Schedule, as schedule_of(orders) returns it")
    return _timeline(problem, Graph(problem, schedule), not_before or [0] * problem.devices)


def simulate_late(problem: Problem, schedule: Schedule, graph: Graph | None = None) -> Timeline:
    """Return the timeline in which tasks are as early as possible, except that devices begin as late as delays no end.

    `graph` is the precedence graph of the order, if known (None: it is made). Raises `Deadlock` if the order can never
    run to its end, and `BadInput` if a pass appears twice or lacks one that it needs, or an order of tasks is not of
    the tasks that run.
    """
    graph = graph or Graph(problem, schedule)
    return _timeline(problem, graph, latest_openings(graph))


def _timeline(problem: Problem, graph: Graph, not_before: Sequence[Ticks]) -> Timeline:
    start, _ = run_order(graph, not_before)
    return Timeline(problem, graph.schedule, graph.starts(start))


def latest_openings(graph: Graph) -> list[Ticks]:
    """Return by device the latest start of its first pass, in ticks, with which no device ends later.

    Ends are compared with those of earliest times. 0 for a device without passes. Raises `Deadlock` if the order can
    never run to its end.
    """
    start, sequence = run_order(graph, [0] * len(graph.opening))
    by = graph.column(int(np.max(start, initial=0)))
    for nodes in graph.closing:
        for node in nodes:
            by[node] = start[node]
    graph.run(latest, by, sequence)
    return [int(min((by[node] for node in nodes), default=0)) for nodes in graph.opening]


def run_order(graph: Graph, not_before: Sequence[Ticks]) -> tuple[Numbers, Numbers]:
    """Return the earliest start of every node in ticks, and the nodes in an order that can run.

    Each node follows its predecessors. `not_before[d]` keeps device d idle until that tick. Raises `Deadlock` if nodes
    wait for each other in a cycle.
    """
    start, sequence, missing = graph.column(0), graph.column(0), graph.missing.copy()
    for nodes, tick in zip(graph.opening, not_before, strict=True):
        for node in nodes:
            start[node] = max(start[node], tick)
    if graph.run(earliest, missing, start, sequence) < len(start):
        raise Deadlock(_cycle(graph, missing))
    return start, sequence


def _cycle(graph: Graph, missing: Numbers) -> list[str]:
    """Return the names of the tasks along a cycle of unmet waits, found by walking back until a node repeats.

    `missing` is the number of predecessors of each node that never ran.
    """
    node = next(number for number, count in enumerate(missing) if count)
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(other for other, _ in graph.waits[node] if missing[other])
    return ["&".join(map(graph.text, graph.tasks[n])) for n in path[seen[node] :]]
