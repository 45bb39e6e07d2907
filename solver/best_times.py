"""Times for an order that is given: under the span objective, starting as soon as possible is not best.

A device whose last pass ends early may as well begin late. That moves its own first pass, and whatever waits for it.
"""

from __future__ import annotations

from pipesched.problem import Objective, Problem
from pipesched.schedule import Schedule
from pipesched.simulator import simulate, simulate_late
from pipesched.timeline import Timeline


def best_times(problem: Problem, schedule: Schedule) -> Timeline:
    """As soon as possible; under the span, each device first begins as late as delays the end of none."""
    if problem.objective is not Objective.SPAN:
        return simulate(problem, schedule)
    return simulate_late(problem, schedule)


def times_within(problem: Problem, schedule: Schedule, value: int) -> Timeline | None:
    """Times for the order that keep the objective within the value; None if there are none. Exact.

    Under the span, a device that would end more than `value` after its start must start later, which may move others.
    Every round settles one more device on a longest path of such moves, so more rounds than devices mean a circle:
    no times will do.
    """
    if problem.objective is not Objective.SPAN:
        timeline = simulate(problem, schedule)
        return timeline if max(_ends(timeline)) <= value else None
    not_before = [0] * problem.devices
    for _ in range(problem.devices + 1):
        timeline = simulate(problem, schedule, not_before)
        moved = [max(start, end - value) for start, end in zip(not_before, _ends(timeline), strict=True)]
        if moved == not_before:
            return timeline
        not_before = moved
    return None


def _ends(timeline: Timeline) -> list[int]:
    """The end of each device's last pass."""
    devices = range(timeline.problem.devices)
    return [max(map(timeline.end, timeline.schedule.passes_on(device)), default=0) for device in devices]
