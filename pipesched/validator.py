"""The judge: says every rule a timeline breaks, and with which passes. Knows neither simulator nor solver."""

from __future__ import annotations

from pipesched.order_rules import complete, placement, slots
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.time_rules import memory, precedence, streams, times
from pipesched.timeline import Timeline
from pipesched.violation import Violation


def validate(timeline: Timeline) -> list[Violation]:
    """Every broken rule of a timeline; empty if it is right.

    Rules: complete, placement, times, precedence, overlap, order, memory. The times are judged only where every
    pass stands exactly once on its own device, since they mean nothing otherwise.
    """
    violations = list(validate_schedule(timeline.problem, timeline.schedule))
    if violations:
        return violations
    violations = list(times(timeline))
    if violations:
        return violations
    return [*precedence(timeline), *streams(timeline), *memory(timeline)]


def validate_schedule(problem: Problem, schedule: Schedule) -> list[Violation]:
    """The rules that concern the order alone: every pass exactly once, on its own device, in proper slots."""
    if schedule.columns.devices != problem.devices:
        text = f"the schedule has {schedule.columns.devices} devices, the problem {problem.devices}"
        return [Violation("placement", (), text)]
    return [*complete(problem, schedule), *placement(problem, schedule), *slots(schedule)]
