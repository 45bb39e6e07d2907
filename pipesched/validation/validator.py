"""The validator: reports every rule that a timeline breaks, and the passes; it uses neither simulator nor solver."""

from __future__ import annotations

from pipesched.arguments import A_TIMELINE, refuse_other
from pipesched.deadline import asking
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.cycle_rule import cycles
from pipesched.validation.gather_rules import around_gathers, gathers
from pipesched.validation.memory_order_rule import memory_by_order
from pipesched.validation.memory_rule import host_memory, memory
from pipesched.validation.order_rules import complete, placement, queues, slots
from pipesched.validation.pass_rules import own_tasks
from pipesched.validation.task_order_rules import task_orders
from pipesched.validation.time_rules import (
    begins,
    between_chains,
    inside,
    precedence,
    streams,
    times,
    waits,
)
from pipesched.validation.violation import Violation

_OF_TIMES = (precedence, between_chains, inside, around_gathers, waits, streams, begins)


def validate(timeline: Timeline) -> list[Violation]:
    """Return broken rules of a timeline; empty exactly if it is valid.

    Rules: complete, placement, parameters, times, precedence, overlap, order, micro-batch order, memory. A rule is
    checked only if those without which it means nothing are kept: times only if the order is valid
    (`validate_schedule`) and every task has a start; cycles only if no time is wrong, and memory under other durations
    only if nothing is. Of memory only the first violation of each device and host is reported. `BadInput` for an object
    that is no timeline.
    """
    refuse_other("validate", timeline, Timeline, A_TIMELINE)
    violations = list(validate_schedule(timeline.problem, timeline.schedule))
    if violations:
        return violations
    violations = list(times(timeline))
    if violations:
        return violations
    violations = [one for rule in asking(_OF_TIMES) for one in rule(timeline)]
    # What is too early or too many at once says more than the cycle it is part of.
    violations += [] if violations or not _has_no_length(timeline) else cycles(timeline)
    above = [one for rule in asking((memory, host_memory)) for one in rule(timeline)]
    # What orders and waits let happen is judged of those that can run, and is worth saying where the times do not.
    return [*violations, *above, *([] if violations or above else memory_by_order(timeline))]


def _has_no_length(timeline: Timeline) -> bool:
    """Return True if some task or block takes no time."""
    problem = timeline.problem
    types = timeline.schedule.columns.pass_types
    # What sends a tensor takes time, or there is none.
    alone = any(task.ticks == 0 for pass_type in types for task in own_tasks(problem, *pass_type))
    return alone or 0 in problem.network.blocks.values()


def validate_schedule(problem: Problem, schedule: Schedule) -> list[Violation]:
    """Return the broken rules that concern the order alone; empty if it is valid.

    Every pass must run exactly once, on its own device, in proper slots. Then come gatherings, orders of tasks with
    waits, and the order of micro-batches; rules that need others to be kept are checked only if these are.
    """
    if schedule.columns.devices != problem.devices:
        text = f"the schedule has {schedule.columns.devices} devices, the problem {problem.devices}"
        return [Violation("placement", (), text)]
    violations = [one for rule in asking((complete, placement, slots)) for one in rule(problem, schedule)]
    violations = violations or list(gathers(problem, schedule))
    if not violations and (schedule.task_orders or schedule.waits):
        violations = list(task_orders(problem, schedule))
    return violations if violations or schedule.task_orders else list(queues(problem, schedule))
