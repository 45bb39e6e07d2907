"""Rules for times, for a schedule whose order is valid: starts, precedence, no overlap, memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import Resource
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import ONCE, B, F, Pass, PassKind, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, TaskPart, Ticks
from pipesched.problem.stage import TaskSpec
from pipesched.schedule.pass_table import Ints, Whole
from pipesched.schedule.start_table import StartTable
from pipesched.schedule.timeline import Timeline, blocks
from pipesched.validation.order_rules import in_fixed_order, out_of_turn
from pipesched.validation.pass_rules import (
    all_tasks,
    awaits,
    for_each,
    for_microbatches,
    needed,
    needed_of_others,
    own_tasks,
    receives,
    run_once,
    streams_besides,
    waited_for,
)
from pipesched.validation.violation import Violation


def times(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations unless every task has a start, nothing else has one, and none is before time 0."""
    starts, columns = timeline.starts, timeline.schedule.columns
    if isinstance(starts, StartTable) and starts.right_for(columns, _parts(timeline)):
        return
    passes, parts = columns.passes, _parts(timeline).tolist()
    # A pair of a pass and a number finds the task that it equals.
    pairs = ((p, part) for p, count in zip(passes, parts, strict=True) for part in range(count))
    missing = [Task(*pair) for pair in pairs if pair not in starts]
    for task in sorted(missing):
        yield Violation("times", (task.of,), f"{timeline.problem.task_text(task)} has no start")
    if len(starts) > sum(parts) - len(missing):
        tasks = {Task(p, part) for p, count in zip(passes, parts, strict=True) for part in range(count)}
        for task in sorted(starts.keys() - tasks):
            text = f"{timeline.problem.task_text(task)} has a start but is not in the schedule"
            yield Violation("times", (task.of,), text)
    for task, start in starts.items():
        if start < 0:
            name, when = timeline.problem.task_text(task), amount(timeline.problem, start)
            yield Violation("times", (task.of,), f"{name} starts at {when}, before time 0")


def _parts(timeline: Timeline) -> Ints:
    """Return by row of the schedule's columns the number of tasks of its pass; a pass in a block has one."""
    problem = timeline.problem
    parts = timeline.schedule.columns.each(lambda *pass_type: len(all_tasks(problem, *pass_type)))
    return np.where(blocks(problem, timeline.schedule) < 0, parts, 1).astype(np.int64)


def precedence(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations for passes that start before their inputs have ended and arrived.

    Tasks of a W wait each for their own part of B, so a W may start before its B has ended.
    """
    problem, columns = timeline.problem, timeline.schedule.columns
    begin, end = timeline.times
    for pass_type in columns.pass_types:
        if pass_type[0] is W and len(own_tasks(problem, *pass_type)) + len(own_tasks(problem, B, pass_type[1])) > 2:
            continue
        # Each micro-batch needs of its own passes what the first does of its, for times of its own.
        for kind, stage, lag in needed(problem, *pass_type):
            later, earlier = columns.rows(*pass_type), columns.rows(kind, stage)
            both = (later >= 0) & (earlier >= 0)
            later, earlier = later[both], earlier[both]
            starts = begin[later]
            if part := awaits(problem, *pass_type, stage):
                starts = timeline.starts_of(later, np.full(len(later), part))
            come = end[earlier] + for_microbatches(problem, lag, columns.microbatch[earlier])
            if lag and problem.resources.transfer_stream is not None:
                sent = all_tasks(problem, kind, stage)
                ticks = for_microbatches(problem, sent[-1].ticks, columns.microbatch[earlier])
                come = timeline.starts_of(earlier, np.full(len(earlier), len(sent) - 1)) + ticks
            for at in np.flatnonzero(starts < come).tolist():
                yield _too_early(timeline, columns.passes[earlier[at]], columns.passes[later[at]], int(come[at]))


def between_chains(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations for passes that start before those of other chains or all micro-batches that they wait for."""
    if not timeline.problem.chain_arcs.arcs and not any(
        run_once(timeline.problem, s) for s in range(timeline.problem.placement.stages)
    ):
        return
    passes = timeline.schedule.pass_set
    for p in timeline.schedule.passes():
        for other, lag in needed_of_others(timeline.problem, p):
            begun = timeline.start(p)
            if receives(timeline.problem, p.kind, p.stage):
                begun = timeline.starts[Task(p, awaits(timeline.problem, p.kind, p.stage, None))]
            if other in passes and begun < (come := _given(timeline, p, other) + lag):
                yield _too_early(timeline, other, p, come)


def _given(timeline: Timeline, p: Pass, other: Pass) -> Ticks:
    """Return the tick at which a pass has ended as far as pass `p` waits for it: all of it, or a bucket's gradients."""
    tasks = own_tasks(timeline.problem, other.kind, other.stage)
    parts = waited_for(timeline.problem, p, other)
    if len(tasks) == 1 or p.kind not in ONCE:
        return timeline.end(other)
    return max(timeline.starts[Task(other, part)] + tasks[part].ticks for part in parts)


def inside(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations unless the tasks of a pass run in order.

    A task of W runs after its task of B, or after all of B.
    """
    problem, columns = timeline.problem, timeline.schedule.columns
    alone = blocks(problem, timeline.schedule) < 0
    for kind, stage in columns.pass_types:
        tasks = all_tasks(problem, kind, stage)
        if len(tasks) + (len(own_tasks(problem, B, stage)) - 1 if kind is W else 0) == 1:
            continue
        rows = columns.rows(kind, stage)
        rows = rows[rows >= 0]
        rows = rows[alone[rows]]
        if kind is not W:
            for part in range(1, len(tasks)):
                yield from _after_the_earlier(timeline, (rows, part - 1, tasks[part - 1].ticks), (rows, part))
            continue
        backward = own_tasks(problem, B, stage)
        both = columns.rows(W, stage) >= 0
        before = columns.rows(B, stage)[both]
        for part, task in enumerate(tasks):
            last = len(backward) - 1 if task.after is None else task.after
            yield from _after_the_earlier(timeline, (before, last, backward[last].ticks), (rows, part))


def _after_the_earlier(
    timeline: Timeline, earlier: tuple[Ints, TaskPart, Ticks], later: tuple[Ints, TaskPart]
) -> Iterator[Violation]:
    """Yield violations unless, for each micro-batch, the later of two tasks starts no earlier than the other's end.

    The tasks are given as rows of their passes and index in the pass, the earlier one with its ticks.
    """
    problem, passes, (rows, part, ticks), (others, next_part) = (
        timeline.problem,
        timeline.schedule.columns.passes,
        earlier,
        later,
    )
    own = for_microbatches(problem, ticks, timeline.schedule.columns.microbatch[rows])
    end = timeline.starts_of(rows, np.full(len(rows), part)) + own
    start = timeline.starts_of(others, np.full(len(others), next_part))
    for at in np.flatnonzero(start < end).tolist():
        one, other = Task(passes[rows[at]], part), Task(passes[others[at]], next_part)
        guilty = tuple(dict.fromkeys((one.of, other.of)))
        text = f"{problem.task_text(other)} starts before {problem.task_text(one)} ends"
        yield Violation("precedence", guilty, text)


def _too_early(timeline: Timeline, before: Pass, p: Pass, come: Ticks) -> Violation:
    """Return the violation of a pass that starts before `come`, when the tensor of pass `before` has arrived."""
    problem, ended = timeline.problem, timeline.end(before)
    wait = f" and its transfer ends at {amount(problem, come)}" if come > ended else ""
    late, early = pass_text(problem, p), pass_text(problem, before)
    text = f"{late} starts at {amount(problem, timeline.start(p))}, but {early} ends at {amount(problem, ended)}{wait}"
    return Violation("precedence", (before, p), text)


def streams(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations for tasks that overlap on a stream, or are not in its order.

    The two passes of a block are one task.
    """
    problem, schedule, columns = timeline.problem, timeline.schedule, timeline.schedule.columns
    begin, _ = timeline.times
    second = (blocks(problem, schedule) >= 0) & columns.each(lambda kind, _: kind is not F).astype(bool)
    for row in np.flatnonzero(second & (begin != np.roll(begin, 1))).tolist():
        slot = columns.passes[row - 1], columns.passes[row]
        first, then = (pass_text(problem, p) for p in slot)
        yield Violation("overlap", slot, f"{first} and {then} are one block but do not start together")
    own = _busy(timeline, np.where(second, 0, _parts(timeline)))
    besides = _busy_besides(timeline)
    every = own if besides is None else _Busy._make(map(np.concatenate, zip(own, besides, strict=True)))
    if besides is None or schedule.task_orders:
        yield from _clashes(timeline, every, _places(timeline, every))
        return
    # Streams of other devices that a task occupies have no order but that of time.
    in_turn, at_once = _clashes(timeline, own, own.rows), _clashes(timeline, every, every.start)
    yield from dict.fromkeys([*in_turn, *at_once])


class _Busy(NamedTuple):
    """Tasks on streams as columns, with an entry for each task.

    `rows` are the rows of their passes in the schedule's columns, `parts` their indices in the pass. They occupy
    `stream`, an index in `Problem.streams`, of `device` from tick `start` to tick `end`.
    """

    rows: Ints
    parts: Ints
    device: Ints
    stream: Ints
    start: Whole
    end: Whole


def _clashes(timeline: Timeline, busy: _Busy, places: Whole) -> Iterator[Violation]:
    """Yield violations for tasks next to each other on a stream, by `places`, that overlap or are not in this order."""
    problem, passes = timeline.problem, timeline.schedule.columns.passes
    rows, _, device, stream, start, end = busy
    on = _owners(problem, device, stream) * len(problem.streams) + stream
    # Stable: the tasks of a pass stay in their order.
    order = np.lexsort((places, on))
    one, other = order[:-1], order[1:]
    for at in np.flatnonzero((on[one] == on[other]) & (start[other] < end[one])).tolist():
        a, b = one[at], other[at]
        rule = "order" if end[b] <= start[a] else "overlap"
        one_task, next_task = (Task(passes[rows[n]], int(busy.parts[n])) for n in (a, b))
        begun, ended = amount(problem, int(start[b])), amount(problem, int(end[a]))
        where = f"device {device[a]}, {problem.streams[stream[a]]}"
        text = f"{problem.task_text(next_task)} starts at {begun}, before {problem.task_text(one_task)} ends at {ended}"
        yield Violation(rule, (one_task.of, next_task.of), f"{where}: {text}")


def _owners(problem: Problem, device: Ints, stream: Ints) -> Ints:
    """Return the device whose order lists each stream: the first one of those that share it."""
    for shared in problem.resources.shared_streams:
        numbers = [n for n, name in enumerate(problem.streams) if name == shared.stream]
        among = np.isin(device, shared.devices) & np.isin(stream, numbers)
        device = np.where(among, shared.devices[0], device)
    return device


def _places(timeline: Timeline, busy: _Busy) -> Ints:
    """Return the place of each task on its stream: that of its pass, unless the schedule orders tasks."""
    orders, problem = timeline.schedule.task_orders, timeline.problem
    if not orders:
        return busy.rows
    place = {(where, task): n for where, tasks in orders.items() for n, task in enumerate(tasks)}
    passes, names = timeline.schedule.columns.passes, problem.streams
    columns = busy.rows, busy.parts, _owners(problem, busy.device, busy.stream), busy.stream
    entries = zip(*(column.tolist() for column in columns), strict=True)
    return np.array(
        [place[Resource(owner, names[stream]), Task(passes[row], part)] for row, part, owner, stream in entries],
        np.int64,
    )


def waits(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations of waits between streams: a task starts no earlier than the end of the one it waits for."""
    problem, starts = timeline.problem, timeline.starts
    for before, after in timeline.schedule.waits:
        tasks = all_tasks(problem, before.of.kind, before.of.stage)
        ticks = for_microbatches(problem, tasks[before.part].ticks, np.array([before.of.microbatch]))
        length = int(ticks if isinstance(ticks, int) else ticks[0])
        end = timeline.end(before.of) if timeline.in_block(before.of) else starts[before] + length
        if starts[after] < end:
            ended = amount(problem, end)
            first, second, begun = problem.task_text(before), problem.task_text(after), amount(problem, starts[after])
            text = f"{second} starts at {begun}, but waits for {first}, which ends at {ended}"
            yield Violation("precedence", (before.of, after.of), text)


def begins(timeline: Timeline) -> Iterator[Violation]:
    """Yield violations of a fixed micro-batch order under given task orders: no pass begins before its predecessor."""
    problem, schedule = timeline.problem, timeline.schedule
    place = {task: (on, n) for on, tasks in schedule.task_orders.items() for n, task in enumerate(tasks)}
    for one, other in in_fixed_order(problem, schedule) if schedule.task_orders else ():
        on, n = place.get(Task(one), (None, 0))
        of_other, m = place.get(Task(other), (None, 0))
        if timeline.start(other) < timeline.start(one):
            begun, before = (amount(problem, timeline.start(p)) for p in (other, one))
            late, early = pass_text(problem, other), pass_text(problem, one)
            text = f"{late} begins at {begun}, before {early} at {before}, but the order of micro-batches is fixed"
            yield Violation("micro-batch order", (other, one), text)
        elif on is not None and on == of_other and m < n:
            # Without length both may begin at once.
            yield out_of_turn(problem, one, other)


def _busy(timeline: Timeline, parts: Ints) -> _Busy:
    """Return the tasks of all passes with the streams of their own devices that they occupy.

    `parts` has the number of tasks of the pass in each row of the schedule's columns.
    """
    found = [_of_part(timeline, part, np.flatnonzero(parts > part)) for part in range(parts.max(initial=1))]
    return _Busy._make(map(np.concatenate, zip(*found, strict=True)))


def _of_part(timeline: Timeline, part: TaskPart, rows: Ints) -> _Busy:
    """Return task number `part` of the passes in these rows, on the stream of its own device."""
    columns, block = timeline.schedule.columns, blocks(timeline.problem, timeline.schedule)[rows]

    def of(kind: PassKind, stage: StageId) -> TaskSpec:
        tasks = all_tasks(timeline.problem, kind, stage)
        return tasks[min(part, len(tasks) - 1)]

    number = {stream: n for n, stream in enumerate(timeline.problem.streams)}
    stream = np.where(block < 0, columns.each(lambda *pass_type: number[of(*pass_type).stream])[rows], 0)
    start = timeline.starts_of(rows, np.full(len(rows), part))
    own = columns.each(lambda *pass_type: of(*pass_type).ticks)[rows]
    ticks = np.where(block < 0, for_each(timeline.problem, own, columns.microbatch[rows]), block)
    return _Busy(rows, np.full(len(rows), part), columns.device[rows], stream.astype(np.int64), start, start + ticks)


def _busy_besides(timeline: Timeline) -> _Busy | None:
    """Return the tasks on streams that they occupy in addition to that of their pass; None if no task does."""
    problem, columns, found = timeline.problem, timeline.schedule.columns, list[_Busy]()
    for pass_type in columns.pass_types:
        for part, task in enumerate(all_tasks(problem, *pass_type)):
            for device, stream in streams_besides(problem, problem.placement.stage_device[pass_type[1]], task):
                rows = columns.rows(*pass_type)
                rows = rows[rows >= 0]
                start, parts = timeline.starts_of(rows, np.full(len(rows), part)), np.full(len(rows), part)
                on = np.full(len(rows), device), np.full(len(rows), problem.streams.index(stream))
                ticks = for_microbatches(problem, task.ticks, columns.microbatch[rows])
                found.append(_Busy(rows, parts, *on, start, start + ticks))
    return _Busy._make(map(np.concatenate, zip(*found, strict=True))) if found else None
