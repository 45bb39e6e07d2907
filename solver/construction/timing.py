"""Optimal times for a given order: for the span, starting as soon as possible is not optimal.

A device whose last pass ends early may as well begin late. That moves its own first pass, and all passes that wait for
it. The least span is the greatest cycle mean of the paths from device to device (Karp, Discrete Mathematics 23, 1978).
It may be a fraction of a tick: the times are then in finer ticks.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from pipesched.deadline import asking
from pipesched.errors import BadInput, Deadlock
from pipesched.problem.attainable_spans import Value, simplest
from pipesched.problem.passes import ONCE
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.problem.rescale import finer
from pipesched.schedule.metrics import device_reach
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.longest_path import Numbers, reached
from pipesched.simulation.precedence_graph import Graph
from pipesched.simulation.simulator import run_order, simulate, simulate_late
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class TimingParams:
    """Limit of the exact least span of an order."""

    most_path_entries: int = tuned(
        50_000_000, "passes x devices, beyond which the span stays that of late starts", 10**6, 10**9
    )


_PARAMS = TimingParams()

# Less than any time, also after times are added to it.
_NEVER = -(2**61)

# `paths[d][e]` is the longest path from the first start of device d to the end of device e, None where there is none.
_PathLengths = list[list[Ticks | None]]


def best_times(problem: Problem, schedule: Schedule) -> Timeline:
    """Return the timeline of an order with its best times: the earliest, or for the span those of least span.

    The least span may be fractional; then the timeline's problem is in finer ticks. Exact, except for orders so long
    that the paths between all devices would take minutes. Memory is not checked. Raises `Deadlock` if the order cannot
    run to its end, and `BadInput` if a pass is missing or appears twice.
    """
    if not problem.objective.by_device:
        return simulate(problem, schedule)
    graph = Graph(problem, schedule)
    timeline = simulate_late(problem, schedule, graph)
    if problem.devices == 1 or len(graph.ticks) * problem.devices > _PARAMS.most_path_entries:
        return timeline
    spans = _spans(timeline)
    span = max(spans)
    longest = spans.index(span)
    _, sequence = run_order(graph, [0] * problem.devices)
    # Mostly the device that takes longest could not be shorter even if no other device counted.
    if _paths_from(graph, sequence, longest)[longest] == span:
        return timeline
    paths = [_paths_from(graph, sequence, device) for device in range(problem.devices)]
    least = greatest_mean(paths)
    return timeline if least == span else _times(problem, schedule, paths, least)


def retimed(problem: Problem, timeline: Timeline) -> Timeline | None:
    """Return the order of a timeline with its best times in `problem`, which has other stages.

    None if it cannot run there; memory is not checked. Since `problem` may have other resources, the order of passes
    alone is tried too, without that of tasks that occupy several resources. Passes that run once an iteration may
    belong to other stages in `problem`: the norm of all gradients does if the first stages are frozen there.
    """
    here, there = set(timeline.schedule.columns.pass_types), set(problem.network.tasks)
    if not here <= there or any(kind in ONCE for kind, _ in there - here):
        return None
    schedules = [timeline.schedule]
    if problem.network.occupies_several:
        schedules.append(Schedule(timeline.schedule.orders, timeline.schedule.name))
    found = list[Timeline]()
    for schedule in schedules:
        with suppress(BadInput, Deadlock):
            found.append(best_times(problem, schedule))
    return min(found, key=lambda one: value_of(problem, one), default=None)


def times_within(problem: Problem, schedule: Schedule, value: Value) -> Timeline | None:
    """Return a timeline of the order whose objective is at most `value` ticks; None if its best times exceed that.

    Its problem may be in finer ticks. Raises `Deadlock` if the order cannot run to its end, and `BadInput` if a pass is
    missing or appears twice.
    """
    timeline = best_times(problem, schedule)
    return timeline if value_of(problem, timeline) <= value else None


def _spans(timeline: Timeline) -> list[Ticks]:
    """Return for each device the ticks from its first start to its last end."""
    reach = (device_reach(timeline, device) for device in range(timeline.problem.devices))
    return [end - begin for begin, end in reach]


def _paths_from(graph: Graph, sequence: Numbers, device: DeviceId) -> list[Ticks | None]:
    """Return the longest paths in ticks from a device's first start to the end of every device.

    None where there is none. `sequence` is an order of the graph's nodes in which none precedes what it waits for.
    """
    start = graph.column(_NEVER)
    for node in graph.opening[device]:
        start[node] = 0
    graph.run(reached, start, sequence)
    ends = [max((int(start[n] + graph.ticks[n]) for n in nodes), default=_NEVER) for nodes in graph.closing]
    return [end if end >= 0 else None for end in ends]


def greatest_mean(paths: _PathLengths) -> Value:
    """Return the greatest mean length, in ticks, of the paths on a cycle of devices; 0 if there is no cycle.

    It is the least span of the order. `paths[d][e]` is the longest path from the first start of device d to the end of
    device e, None without one.
    """
    n = len(paths)
    # For each number k of paths, the longest walk of k paths that ends on each device.
    walks: list[list[int | None]] = [[0] * n]
    for _ in asking(range(n)):
        walks.append([_longest(walks[-1], paths, e) for e in range(n)])
    means: list[Fraction] = []
    for e, end in asking(enumerate(walks[n])):
        if end is not None:
            shorter = ((k, walks[k][e]) for k in range(n))
            means.append(min(Fraction(end - begin, n - k) for k, begin in shorter if begin is not None))
    return simplest(max(means, default=Fraction(0)))


def _longest(walks: list[Ticks | None], paths: _PathLengths, e: int) -> Ticks | None:
    steps = ((walk, paths[d][e]) for d, walk in enumerate(walks))
    return max((walk + path for walk, path in steps if walk is not None and path is not None), default=None)


def _times(problem: Problem, schedule: Schedule, paths: _PathLengths, span: Value) -> Timeline:
    """Return a timeline in which every device begins as early as possible with all spans at most `span` ticks.

    `paths[d][e]` is the longest path in ticks from the first start of device d to the end of device e, None without
    one. The timeline's ticks are finer if `span` is a fraction.
    """
    parts, begins = span.denominator, [0] * problem.devices
    devices = range(problem.devices)
    for _ in asking(devices):
        for d in devices:
            for e in devices:
                path = paths[d][e]
                if path is not None:
                    begins[e] = max(begins[e], begins[d] + path * parts - span.numerator)
    return simulate(finer(problem, parts), schedule, begins)
