"""Rule: tasks of zero duration do not wait for each other in a cycle, which their times alone cannot exclude."""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.problem.formatting import amount
from pipesched.problem.passes import BW, Pass, Stream, Task
from pipesched.schedule.timeline import Timeline, block_ticks
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
    problem, starts = timeline.problem, timeline.starts
    fused = {(p.stage, p.microbatch) for p in timeline.schedule.columns.passes if p.kind is BW}
    first: dict[Pass, Task] = {}  # the first and the last task of each pass of which that one has zero duration
    last: dict[Pass, Task] = {}
    before: _Before = {}
    for order in timeline.schedule.orders:
        on_stream: dict[Stream, Task] = {}
        for slot in order:
            block = block_ticks(problem, slot)
            if block is not None:
                # The two passes of a block are one task.
                _follow(before, on_stream, Stream.COMPUTE, Task(slot[0]), block, None)
                if block == 0:
                    first |= dict.fromkeys(slot, Task(slot[0]))
                    last |= dict.fromkeys(slot, Task(slot[0]))
                continue
            for p in slot:
                previous: Task | None = None
                tasks = list(problem.tasks(p))
                for task, part in tasks:
                    _follow(before, on_stream, part.stream, task, part.ticks, previous)
                    previous = task if part.ticks == 0 else None
                if tasks[0][1].ticks == 0:
                    first[p] = tasks[0][0]
                if previous is not None:
                    last[p] = previous
    for p, task in first.items():
        needs = problem.needs(p, lambda stage, j: (stage, j) in fused)
        before[task] |= {last[need.before] for need in needs if need.lag == 0 and need.before in last}
    return {task: {one for one in tasks if starts[one] == starts[task]} for task, tasks in before.items()}


def _follow(
    before: _Before, on_stream: dict[Stream, Task], stream: Stream, task: Task, ticks: int, previous: Task | None
) -> None:
    """Put a task behind the one before it on its stream and the one before it in its pass, if its duration is zero."""
    if ticks:
        on_stream.pop(stream, None)
        return
    before[task] = {one for one in (on_stream.get(stream), previous) if one is not None}
    on_stream[stream] = task
