"""Timelines: a schedule with the start time of every task, in ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from pipesched.deadline import SHORT, asking
from pipesched.html_of import html_of
from pipesched.problem.passes import Pass, PassKind, Slot, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, TaskPart, Ticks
from pipesched.problem.stage import TaskSpec
from pipesched.schedule.microbatch_factors import by_microbatch
from pipesched.schedule.pass_table import Ints, Whole, whole
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.start_table import StartTable


class Occupied(NamedTuple):
    """The time from `start` to `end`, in ticks, in which a task occupies a stream.

    `part` is the task's specification.
    """

    task: Task
    part: TaskSpec
    stream: str
    start: Ticks
    end: Ticks


@dataclass(frozen=True, repr=False)
class Timeline:
    """A schedule with the start of each task in ticks. Ends follow from the problem's durations and the slots.

    Each of the two passes of a block has one task, number 0, with the block's start.
    """

    problem: Problem
    schedule: Schedule
    starts: Mapping[Task, Ticks]

    def __repr__(self) -> str:
        return f"<Timeline of {self.schedule.name!r} for {self.problem.name!r}: {len(self.schedule.columns)} passes>"

    def _repr_html_(self) -> str | None:
        """Return the Gantt chart, for notebooks.

        None, which shows plain text, if no HTML is known for it.
        """
        return html_of(self)

    @cached_property
    def _blocks(self) -> dict[Pass, Ticks]:
        """The duration in ticks of the overlapped block of each pass that runs inside one."""
        blocks: dict[Pass, int] = {}
        for order in self.schedule.orders:
            for slot in order:
                ticks = block_ticks(self.problem, slot)
                if ticks is not None:
                    blocks.update(dict.fromkeys(slot, ticks))
        return blocks

    def start(self, p: Pass) -> Ticks:
        """Return the start of the first of a pass's tasks, in ticks."""
        if p in self._blocks:
            return self.starts[Task(p)]
        parts = range(self.problem.dependencies.ends_of(p.kind, p.stage)[-1] + 1)
        return min(self.starts[Task(p, part)] for part in parts)

    def end(self, p: Pass) -> Ticks:
        """Return the end of a pass in ticks: of its last task, except the task that sends its tensor."""
        if p in self._blocks:
            return self.start(p) + self._blocks[p]
        tasks, scaled = self.problem.tasks_of(p.kind, p.stage), self.problem.scaled
        ends = self.problem.dependencies.ends_of(p.kind, p.stage)
        return max(self.starts[Task(p, part)] + scaled(tasks[part].ticks, p.microbatch) for part in ends)

    @cached_property
    def times(self) -> tuple[Whole, Whole]:
        """The start and the end of every pass in ticks, as arrays with an entry for each row of the schedule's columns.

        A task that sends the pass's tensor does not count.
        """
        return self._extent(lambda *pass_type: self.problem.dependencies.ends_of(*pass_type)[-1] + 1)

    @cached_property
    def reach(self) -> tuple[Whole, Whole]:
        """The start and end of every pass in ticks, as two arrays by row of the schedule's columns.

        A pass includes the tasks that send its tensors.
        """
        if self.problem.resources.transfer_stream is None:
            return self.times
        return self._extent(lambda *pass_type: len(self.problem.tasks_of(*pass_type)))

    def _extent(self, parts_of: Callable[[PassKind, StageId], int]) -> tuple[Whole, Whole]:
        """Return the first start and the last end over the first `parts_of` tasks of every pass, as arrays by row.

        A pass in a block has one task.
        """
        columns, problem = self.schedule.columns, self.problem
        block = blocks(problem, self.schedule)
        parts = np.where(block < 0, columns.each(parts_of), 1)
        rows = np.arange(len(columns))
        begin = self.starts_of(rows, np.zeros_like(rows))
        first = columns.each(lambda *pass_type: problem.tasks_of(*pass_type)[0].ticks)
        end = begin + np.where(block < 0, by_microbatch(problem, first, columns.microbatch), block)
        for part in range(1, int(parts.max(initial=1))):
            longer = np.flatnonzero(parts > part)
            start = self.starts_of(longer, np.full(len(longer), part))
            ticks = columns.each(lambda *pass_type, n=part: _ticks(problem.tasks_of(*pass_type), n))[longer]
            ticks = by_microbatch(problem, ticks, columns.microbatch[longer])
            exact = np.result_type(begin, end, start, ticks)
            begin, end = begin.astype(exact), end.astype(exact)
            begin[longer], end[longer] = np.minimum(begin[longer], start), np.maximum(end[longer], start + ticks)
        return begin, end

    def starts_of(self, rows: Ints, part: Ints) -> Whole:
        """Return the start, in ticks, of task `part[i]` of the pass in row `rows[i]` of the schedule's columns."""
        columns = self.schedule.columns
        if isinstance(self.starts, StartTable) and self.starts.columns is columns:
            return self.starts.of(rows, part)
        # A pair of a pass and a number finds the task that it equals.
        starts: Mapping[tuple[Pass, int], int] = self.starts  # type: ignore[assignment]
        return whole(
            [starts[columns.passes[row], task] for row, task in zip(rows.tolist(), part.tolist(), strict=True)]
        )

    @cached_property
    def elsewhere(self) -> Mapping[DeviceId, Sequence[Occupied]]:
        """By device, the tasks of other devices' passes that occupy one of its streams; empty where there are none."""
        found: dict[int, list[Occupied]] = {}
        if self.problem.network.occupies_several:
            for p in asking(self.schedule.passes(), SHORT):
                for task, part in self.problem.tasks(p):
                    for device, stream in part.also:
                        begun = self.starts[task]
                        found.setdefault(device, []).append(Occupied(task, part, stream, begun, begun + part.ticks))
        return found

    def in_block(self, p: Pass) -> bool:
        """Return True if `p` runs inside an overlapped block of one duration."""
        return p in self._blocks

    def busy(self, device: DeviceId, stream: str = "") -> list[tuple[Ticks, Ticks]]:
        """Return the intervals (start, end), in ticks, in which a stream of a device works, one for each task or block.

        They are in the order of the device's passes, then those of other devices' tasks, and not sorted by time.
        `stream` is the name of the stream, by default the device's first.
        """
        intervals: list[tuple[int, int]] = []
        first = self.problem.streams[0]
        stream = stream or first
        for slot in self.schedule.orders[device]:
            if slot[0] in self._blocks:
                if stream == first:
                    intervals.append((self.start(slot[0]), self.end(slot[0])))
                continue
            for p in slot:
                for task, part in self.problem.tasks(p):
                    if part.stream == stream:
                        intervals.append((self.starts[task], self.starts[task] + part.ticks))
        return intervals + [(one.start, one.end) for one in self.elsewhere.get(device, ()) if one.stream == stream]


def _ticks(tasks: Sequence[TaskSpec], part: TaskPart) -> Ticks:
    return tasks[part].ticks if part < len(tasks) else 0


def blocks(problem: Problem, schedule: Schedule) -> Whole:
    """Return by row of the schedule's columns the ticks of the block that the pass is in; -1 for a pass in no block."""
    columns = schedule.columns
    if not problem.network.blocks:
        return np.full(len(columns), -1)
    ticks = [block_ticks(problem, slot) for order in schedule.orders for slot in order for _ in slot]
    return whole([-1 if block is None else block for block in ticks])


def block_ticks(problem: Problem, slot: Slot) -> Ticks | None:
    """Return the ticks of a slot that runs as one overlapped block; None for every other slot."""
    return problem.overlapped_ticks(slot[0], slot[1]) if len(slot) == 2 else None
