"""Rule: tasks of zero duration do not wait for each other in a cycle, which their times alone cannot exclude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from pipesched.problem.formatting import amount
from pipesched.problem.passes import B, Pass, Task, W
from pipesched.problem.quantities import Ticks
from pipesched.schedule.timeline import Timeline, block_ticks
from pipesched.validation.gather_rules import tied_by_gathers
from pipesched.validation.pass_rules import all_tasks, awaits, needed, needed_of_others, own_tasks, waited_for
from pipesched.validation.task_order_rules import streams_of
from pipesched.validation.violation import Violation

# For each task of zero duration those that come before it at the same instant.
_Before = dict[Task, set[Task]]


def cycles(timeline: Timeline) -> Iterator[Violation]:
    """Yield at most one violation: a cycle of tasks without duration at one instant, each waiting for the next."""
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
        text = (
            f"at {when} {' waits for '.join(map(timeline.problem.task_text, [*cycle, task]))}: the order can never run"
        )
        yield Violation("order", tuple(dict.fromkeys(task.of for task in cycle)), text)


def _before(timeline: Timeline) -> _Before:
    """Return for each task of zero duration its predecessors of zero duration at the same instant.

    Only tasks of zero duration can precede others of their instant and be preceded by them.
    """
    problem, schedule, starts = timeline.problem, timeline.schedule, timeline.starts
    streams = streams_of(problem, schedule).values()
    before: _Before = {task: set() for tasks in streams for task in tasks if _ticks(timeline, task) == 0}
    pairs = [pair for tasks in streams for pair in pairwise(tasks)]
    pairs += [(wait.before, wait.after) for wait in schedule.waits]
    ends, short = _ends(timeline), {task.of for task in before}
    for p, end in ends.items():
        if end.of in short or p in short:
            pairs += _own_pairs(timeline, p, ends)
    pairs += [(ends[p], Task(q)) for p, q in tied_by_gathers(problem, schedule)]
    for one, other in pairs:
        if one in before and other in before and starts[one] == starts[other]:
            before[other].add(one)
    return before


def _own_pairs(timeline: Timeline, p: Pass, ends: Mapping[Pass, Task]) -> Iterator[tuple[Task, Task]]:
    """Yield (predecessor, task) for the tasks of a pass.

    Predecessors have to end before the task, and are in the same or in other passes.
    """
    problem = timeline.problem
    if p.kind is W:
        b = p._replace(kind=B)
        for part, task in enumerate(own_tasks(problem, W, p.stage)):
            yield ends[b] if task.after is None else Task(b, task.after), Task(p, part)
        return
    if not timeline.in_block(p):
        yield from pairwise(Task(p, part) for part in range(len(all_tasks(problem, p.kind, p.stage))))
    near = [Pass(kind, stage, p.microbatch) for kind, stage, lag in needed(problem, p.kind, p.stage) if lag == 0]
    first = ends[p] if timeline.in_block(p) else Task(p, awaits(problem, p.kind, p.stage, None))
    yield from ((ends[other], first) for other in near if other in ends)
    for other, lag in needed_of_others(problem, p):
        if lag == 0 and other in ends:
            parts = [Task(other, part) for part in waited_for(problem, p, other)]
            yield from ((one, first) for one in ([ends[other]] if timeline.in_block(other) else parts))


def _ends(timeline: Timeline) -> dict[Pass, Task]:
    """Return by pass its last task before its tensor is sent.

    The two passes of a block are one task, the forward's first.
    """
    found: dict[Pass, Task] = {}
    for order in timeline.schedule.orders:
        for slot in order:
            if block_ticks(timeline.problem, slot) is not None:
                found |= dict.fromkeys(slot, Task(slot[0]))
                continue
            for p in slot:
                found[p] = Task(p, len(own_tasks(timeline.problem, p.kind, p.stage)) - 1)
    return found


def _ticks(timeline: Timeline, task: Task) -> Ticks:
    if timeline.in_block(task.of):
        return timeline.end(task.of) - timeline.start(task.of)
    return all_tasks(timeline.problem, task.of.kind, task.of.stage)[task.part].ticks
