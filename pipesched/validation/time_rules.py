"""Rules about times, for a schedule whose order is valid: starts, precedence, no overlap, memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from pipesched.problem.formatting import amount, memory_amount, memory_text
from pipesched.problem.passes import F, Pass, PassKind, Task
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.pass_table import Ints, Whole
from pipesched.schedule.start_table import StartTable
from pipesched.schedule.timeline import Timeline, blocks
from pipesched.validation.pass_rules import memory_changes, needed
from pipesched.validation.violation import Violation


def times(timeline: Timeline) -> Iterator[Violation]:
    """Every task has a start, nothing else has, and none is before time 0."""
    starts, columns = timeline.starts, timeline.schedule.columns
    if isinstance(starts, StartTable) and starts.right_for(columns, _parts(timeline)):
        return
    passes, parts = columns.passes, _parts(timeline).tolist()
    # A pair of a pass and a number finds the task that it equals.
    pairs = ((p, part) for p, count in zip(passes, parts, strict=True) for part in range(count))
    missing = [Task(*pair) for pair in pairs if pair not in starts]
    for task in sorted(missing):
        yield Violation("times", (task.of,), f"{task} has no start")
    if len(starts) > sum(parts) - len(missing):
        tasks = {Task(p, part) for p, count in zip(passes, parts, strict=True) for part in range(count)}
        for task in sorted(starts.keys() - tasks):
            yield Violation("times", (task.of,), f"{task} has a start but is not in the schedule")
    for task, start in starts.items():
        if start < 0:
            yield Violation("times", (task.of,), f"{task} starts at {amount(timeline.problem, start)}, before time 0")


def _parts(timeline: Timeline) -> Ints:
    """How many tasks each pass is; a pass in a block is one."""
    stages = timeline.problem.stages
    parts = timeline.schedule.columns.each(lambda kind, stage: len(stages[stage].tasks_of(kind)))
    return np.where(blocks(timeline.problem, timeline.schedule) < 0, parts, 1).astype(np.int64)


def precedence(timeline: Timeline) -> Iterator[Violation]:
    """Every pass starts when what it needs has ended and come; every task of a pass when the one before has ended."""
    problem, columns = timeline.problem, timeline.schedule.columns
    begin, end = timeline.times
    for pass_type in columns.pass_types:
        # Micro-batches are alike: each needs of its own passes what the first does of its.
        for kind, stage, lag in needed(problem, *pass_type):
            later, earlier = columns.rows(*pass_type), columns.rows(kind, stage)
            both = (later >= 0) & (earlier >= 0)
            later, earlier = later[both], earlier[both]
            for at in np.flatnonzero(begin[later] < end[earlier] + lag).tolist():
                yield _too_early(timeline, columns.passes[earlier[at]], columns.passes[later[at]], lag)
    for row in np.flatnonzero(_parts(timeline) > 1).tolist():
        p = columns.passes[row]
        for (task, part), (following, _) in pairwise(problem.tasks(p)):
            if timeline.starts[following] < timeline.starts[task] + part.ticks:
                yield Violation("precedence", (p,), f"{following} starts before {task} ends")


def _too_early(timeline: Timeline, before: Pass, p: Pass, lag: int) -> Violation:
    problem, ended = timeline.problem, timeline.end(before)
    wait = f" and its transfer ends at {amount(problem, ended + lag)}" if lag else ""
    text = f"{p} starts at {amount(problem, timeline.start(p))}, but {before} ends at {amount(problem, ended)}{wait}"
    return Violation("precedence", (before, p), text)


def streams(timeline: Timeline) -> Iterator[Violation]:
    """One task at a time on each stream, in the order the schedule gives; the two passes of a block are one task."""
    problem, columns = timeline.problem, timeline.schedule.columns
    begin, _ = timeline.times
    second = (blocks(problem, timeline.schedule) >= 0) & columns.each(lambda kind, _: kind is not F).astype(bool)
    for row in np.flatnonzero(second & (begin != np.roll(begin, 1))).tolist():
        slot = columns.passes[row - 1], columns.passes[row]
        yield Violation("overlap", slot, f"{slot[0]} and {slot[1]} are one block but do not start together")
    parts = np.where(second, 0, _parts(timeline))
    busy = [_busy(timeline, part, np.flatnonzero(parts > part)) for part in range(parts.max(initial=1))]
    rows, stream, start, end = (np.concatenate(column) for column in zip(*busy, strict=True))
    on = columns.device[rows] * len(problem.streams) + stream
    # Stable: the tasks of a pass stay in their order.
    order = np.lexsort((_places(timeline, rows, busy), on))
    one, other = order[:-1], order[1:]
    for at in np.flatnonzero((on[one] == on[other]) & (start[other] < end[one])).tolist():
        a, b = one[at], other[at]
        rule = "order" if end[b] <= start[a] else "overlap"
        p, following = columns.passes[rows[a]], columns.passes[rows[b]]
        begun, ended = amount(problem, int(start[b])), amount(problem, int(end[a]))
        where = f"device {columns.device[rows[a]]}, {problem.streams[stream[a]]}"
        yield Violation(rule, (p, following), f"{where}: {following} starts at {begun}, before {p} ends at {ended}")


def _places(timeline: Timeline, rows: Ints, busy: list[tuple[Ints, Ints, Whole, Whole]]) -> Ints:
    """The place on its stream of each task: that of its pass, unless the schedule orders tasks."""
    orders = timeline.schedule.task_orders
    if not orders:
        return rows
    place = {task: n for tasks in orders.values() for n, task in enumerate(tasks)}
    passes, parts = (
        timeline.schedule.columns.passes,
        [(row, part) for part, (own, *_) in enumerate(busy) for row in own],
    )
    return np.array([place[Task(passes[row], part)] for row, part in parts], np.int64)


def waits(timeline: Timeline) -> Iterator[Violation]:
    """The events between streams: a task starts when the one it waits for has ended."""
    problem, starts = timeline.problem, timeline.starts
    for before, after in timeline.schedule.waits:
        tasks = problem.stages[before.of.stage].tasks_of(before.of.kind)
        end = timeline.end(before.of) if timeline.in_block(before.of) else starts[before] + tasks[before.part].ticks
        if starts[after] < end:
            ended = amount(problem, end)
            text = f"{after} starts at {amount(problem, starts[after])}, but waits for {before}, which ends at {ended}"
            yield Violation("precedence", (before.of, after.of), text)


def _busy(timeline: Timeline, part: int, rows: Ints) -> tuple[Ints, Ints, Whole, Whole]:
    """For rows that have a task of that number: the row, its stream as a number, its start and its end."""
    columns, block = timeline.schedule.columns, blocks(timeline.problem, timeline.schedule)[rows]

    def of(kind: PassKind, stage: int) -> TaskSpec:
        parts = timeline.problem.stages[stage].tasks_of(kind)
        return parts[min(part, len(parts) - 1)]

    number = {stream: n for n, stream in enumerate(timeline.problem.streams)}
    stream = np.where(block < 0, columns.each(lambda *pass_type: number[of(*pass_type).stream])[rows], number[COMPUTE])
    start = timeline.starts_of(rows, np.full(len(rows), part))
    ticks = np.where(block < 0, columns.each(lambda *pass_type: of(*pass_type).ticks)[rows], block)
    return rows, stream.astype(np.int64), start, start + ticks


def memory(timeline: Timeline) -> Iterator[Violation]:
    """On no device do the passes hold more than its capacity; at most one violation a device, the first."""
    problem, columns = timeline.problem, timeline.schedule.columns

    def change(end: int) -> Whole:
        return columns.each(lambda kind, stage: memory_changes(problem, kind, stage)[end], 2 * len(columns))

    # Start and end of each pass side by side: a stable sort leaves what falls on one tick in the device's order.
    ticks, changes = np.stack(timeline.times, axis=1), np.stack((change(0), change(1)), axis=1)
    for device, capacity in enumerate(problem.room):
        if capacity is None:
            continue
        rows = columns.on(device)
        order = np.argsort(ticks[rows].ravel(), kind="stable")
        steps = changes[rows].ravel()[order]
        levels = steps.cumsum()
        for at in np.flatnonzero(np.greater(steps, 0) & np.greater(levels, capacity))[:1].tolist():
            p = columns.passes[rows.start + order[at] // 2]
            static = problem.static[device]
            held, limit = memory_text(problem, int(levels[at]) + static), memory_amount(problem, capacity + static)
            when = f"when {p} starts at {amount(problem, timeline.start(p))}"
            text = f"device {device} holds {held} {when}; its capacity is {limit}"
            yield Violation("memory", (p,), text)
