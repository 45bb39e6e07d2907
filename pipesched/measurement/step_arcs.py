"""One measured step as a network: the predecessors of each pass, with planned and measured lags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.measurement.trace import MeasuredPass, Step
from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.precedence_graph import Graph
from pipesched.simulation.simulator import run_order


class Arc(NamedTuple):
    """A wait of a pass for the end of pass `before`.

    Its lag in seconds is `planned` by the problem, and `measured` in the step. With `message` the two passes are on
    different devices, else on one. The measured lag is known only for the arc that a pass waited for last; for other
    arcs `measured` equals `planned`, or is less if the pass began sooner.
    """

    before: Pass
    message: bool
    planned: float
    measured: float


@dataclass(frozen=True)
class StepArcs:
    """The passes of a step, each after its predecessors, with their arcs.

    `ran` has the measured times, in seconds from the step's first start; all mappings by pass have its order. `arcs[p]`
    are all waits of p, `binding[p]` is the one that p waited for last. `opening` has the start of each pass that waits
    for none, which `binding` does not have, `device` the device of each.
    """

    ran: Mapping[Pass, MeasuredPass]
    arcs: Mapping[Pass, tuple[Arc, ...]]
    binding: Mapping[Pass, Arc]
    opening: Mapping[Pass, float]
    device: Mapping[Pass, DeviceId]

    def replay(
        self, seconds: Callable[[Pass], float], lag: Callable[[Arc], float], opened: bool = False
    ) -> tuple[dict[Pass, float], dict[Pass, float]]:
        """Return the starts and the ends, by pass in seconds, if passes take `seconds(pass)` and arcs `lag(arc)`.

        Passes without predecessors begin at 0, or with `opened` when they began in the measured step.
        """
        starts: dict[Pass, float] = {}
        ends: dict[Pass, float] = {}
        for p in self.ran:
            first = self.opening[p] if opened and p in self.opening else 0.0
            starts[p] = max((ends[arc.before] + lag(arc) for arc in self.arcs[p]), default=first)
            ends[p] = starts[p] + seconds(p)
        return starts, ends


def step_arcs(problem: Problem, schedule: Schedule, step: Step, tick: float) -> StepArcs | None:
    """Return the network of a measured step that ran this schedule; None if passes have several tasks.

    The step must have the passes of `schedule`, each device in its order; `tick` is in seconds.
    """
    graph = Graph(problem, schedule)
    if any(len(tasks) > 1 or tasks[0].part for tasks in graph.tasks):
        return None
    _, sequence = run_order(graph, [0] * problem.devices)
    passes = [tasks[0].of for tasks in graph.tasks]
    begin = min(one.start for row in step for one in row)
    unordered = {one.of: MeasuredPass(one.of, one.start - begin, one.end - begin) for row in step for one in row}
    ran: dict[Pass, MeasuredPass] = {}
    arcs: dict[Pass, tuple[Arc, ...]] = {}
    binding: dict[Pass, Arc] = {}
    opening: dict[Pass, float] = {}
    for node in map(int, sequence):
        p = passes[node]
        ran[p] = unordered[p]
        waits = [(passes[before], float(lag) * tick) for before, lag in graph.waits[node]]
        arcs[p] = _arcs(problem, unordered, p, waits)
        if waits:
            binding[p] = max(arcs[p], key=lambda arc: unordered[arc.before].end + arc.planned)
        else:
            opening[p] = ran[p].start
    return StepArcs(ran, arcs, binding, opening, {p: problem.device(p) for p in ran})


def _arcs(
    problem: Problem, ran: Mapping[Pass, MeasuredPass], p: Pass, waits: Sequence[tuple[Pass, float]]
) -> tuple[Arc, ...]:
    """Return the arcs into a pass, from the passes that it waits for with their planned lags in seconds (`waits`).

    The measured lag is known for the last arrival, and for arcs shorter than planned; else it is the planned one.
    """
    ready = max((ran[before].end + planned for before, planned in waits), default=0.0)
    found = []
    for before, planned in waits:
        took = ran[p].start - ran[before].end
        known = took < planned or ran[before].end + planned == ready
        found.append(Arc(before, problem.device(before) != problem.device(p), planned, took if known else planned))
    return tuple(found)
