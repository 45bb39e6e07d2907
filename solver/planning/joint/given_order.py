"""Objective value of a fixed order under changing stage costs: longest paths in a graph that is built once."""

from __future__ import annotations

import numpy as np

from pipesched.int64_arrays import int64_array
from pipesched.problem.quantities import Ticks
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.longest_path import compiled, reached
from pipesched.simulation.precedence_graph import Graph
from pipesched.simulation.simulator import run_order
from solver.planning.joint.draft import KINDS, Costs


class GivenOrder:
    """Precedence graph of a timeline's order, for its value under other stage costs; each pass is one task.

    `length` is the number of stages of a chain.
    """

    def __init__(self, timeline: Timeline, length: int) -> None:
        problem, columns = timeline.problem, timeline.schedule.columns
        graph = Graph(problem, timeline.schedule)
        self._sequence = np.asarray(run_order(graph, [0] * problem.devices)[1], np.int64)
        self._arcs = tuple(np.asarray(column, np.int64) for column in (graph.at, graph.after, graph.lag))
        types = np.array([KINDS.index(kind) * length + stage % length for kind, stage in columns.pass_types])
        self._type = types[columns.pass_type]
        rows = [columns.on(device) for device in range(problem.devices)]
        self._first = int64_array([row.start for row in rows if row.stop > row.start])
        self._last = int64_array([row.stop - 1 for row in rows if row.stop > row.start])
        self._span = problem.objective.by_device

    def value(self, costs: Costs) -> Ticks:
        """Return the objective in ticks when every pass starts as soon as possible."""
        ticks = costs.ticks.ravel()[self._type]
        start = np.zeros(len(ticks), np.int64)
        compiled(reached)(*self._arcs, ticks, start, self._sequence)
        ends = start[self._last] + ticks[self._last]
        return int((ends - start[self._first] if self._span else ends).max(initial=0))
