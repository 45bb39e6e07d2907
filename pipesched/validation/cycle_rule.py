"""Rule: tasks of zero duration do not wait for each other in a cycle, which their times alone cannot exclude."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pipesched.problem.formatting import amount
from pipesched.problem.passes import Pass, Task
from pipesched.schedule.timeline import Timeline, block_ticks
from pipesched.validation.pass_rules import needed
from pipesched.validation.task_order_rules import streams_of
from pipesched.validation.violation import Violation

# For each task of zero duration those that come before it at the same instant.
_Before = dict[Task, set[Task]]


def cycles(timeline: Timeline) -> Iterator[Violation]:
    """At most one cycle: tasks of zero duration at one instant, each of which must come before the next."""
    before = _before(timeline)
    left = set(before)
    while free := {task for task in left if not before[task] & left}:
        left -= free
    if left:
        task, path = min(left), list[Task]()
        while task not in path:
            path.append(task)
            task = min(before[task] & left)
        cycle = path[path.index(task) :]
        when = amount(timeline.problem, timeline.starts[task])
        text = f"at {when} {' waits for '.join(map(str, [*cycle, task]))}: the order can never run"
        yield Violation("order", tuple(dict.fromkeys(task.of for task in cycle)), text)


def _before(timeline: Timeline) -> _Before:
    problem, schedule, starts = timeline.problem, timeline.schedule, timeline.starts
    ends = _ends(timeline)
    pairs = [pair for tasks in streams_of(problem, schedule).values() for pair in pairwise(tasks)]
    pairs += [pair for first, last in set(ends.values()) for pair in pairwise(_tasks(first, last))]
    pairs += [(wait.before, wait.after) for wait in schedule.waits]
    for p, (first, _) in ends.items():
        near = (Pass(kind, stage, p.microbatch) for kind, stage, lag in needed(problem, p.kind, p.stage) if lag == 0)
        pairs += [(ends[other][1], first) for other in near if other in ends]
    # Only tasks without length can come before others of the same instant and be waited for by them.
    length = {task: _ticks(timeline, task) for tasks in streams_of(problem, schedule).values() for task in tasks}
    before: _Before = {task: set() for task, ticks in length.items() if ticks == 0}
    for one, other in pairs:
        if one in before and other in before and starts[one] == starts[other]:
            before[other].add(one)
    return before


def _ends(timeline: Timeline) -> dict[Pass, tuple[Task, Task]]:
    """The first and the last task of each pass; the two passes of a block are one task, its forward's first."""
    found: dict[Pass, tuple[Task, Task]] = {}
    for order in timeline.schedule.orders:
        for slot in order:
            if block_ticks(timeline.problem, slot) is not None:
                found |= dict.fromkeys(slot, (Task(slot[0]), Task(slot[0])))
                continue
            for p in slot:
                count = len(timeline.problem.stages[p.stage].tasks_of(p.kind))
                found[p] = Task(p), Task(p, count - 1)
    return found


def _tasks(first: Task, last: Task) -> list[Task]:
    return [Task(first.of, part) for part in range(first.part, last.part + 1)]


def _ticks(timeline: Timeline, task: Task) -> int:
    if timeline.in_block(task.of):
        return timeline.end(task.of) - timeline.start(task.of)
    return timeline.problem.stages[task.of.stage].tasks_of(task.of.kind)[task.part].ticks
