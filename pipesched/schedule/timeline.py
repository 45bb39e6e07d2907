"""A timeline: a schedule with the start time of every task, in ticks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipesched.problem.passes import Pass, Slot, Task
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE
from pipesched.schedule.pass_table import Ints, Whole, whole
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.start_table import StartTable


@dataclass(frozen=True, repr=False)
class Timeline:
    """When each task of a schedule starts. Where it ends follows from the problem's durations and the slots."""

    problem: Problem
    schedule: Schedule
    starts: Mapping[Task, int]

    def __repr__(self) -> str:
        return f"<Timeline of {self.schedule.name!r} for {self.problem.name!r}: {len(self.schedule.columns)} passes>"

    @cached_property
    def _blocks(self) -> dict[Pass, int]:
        """The duration of each pass that runs inside an overlapped block."""
        blocks: dict[Pass, int] = {}
        for order in self.schedule.orders:
            for slot in order:
                ticks = block_ticks(self.problem, slot)
                if ticks is not None:
                    blocks.update(dict.fromkeys(slot, ticks))
        return blocks

    def start(self, p: Pass) -> int:
        return self.starts[Task(p)]

    def end(self, p: Pass) -> int:
        if p in self._blocks:
            return self.start(p) + self._blocks[p]
        tasks = self.problem.network.tasks[p.kind, p.stage]
        return self.starts[Task(p, len(tasks) - 1)] + tasks[-1].ticks

    @cached_property
    def times(self) -> tuple[Whole, Whole]:
        """The start and the end of every pass, as columns parallel to the schedule's."""
        columns, tasks = self.schedule.columns, self.problem.network.tasks
        block = blocks(self.problem, self.schedule)
        last = np.where(block < 0, columns.each(lambda *pass_type: len(tasks[pass_type]) - 1), 0)
        ticks = np.where(block < 0, columns.each(lambda *pass_type: tasks[pass_type][-1].ticks), block)
        rows = np.arange(len(columns))
        begin = self.starts_of(rows, np.zeros_like(rows))
        return begin, (self.starts_of(rows, last.astype(np.int64)) if last.any() else begin) + ticks

    def starts_of(self, rows: Ints, part: Ints) -> Whole:
        """The start of this task of each of these rows of the schedule's columns."""
        columns = self.schedule.columns
        if isinstance(self.starts, StartTable) and self.starts.columns is columns:
            return self.starts.of(rows, part)
        # A pair of a pass and a number finds the task that it equals.
        starts: Mapping[tuple[Pass, int], int] = self.starts  # type: ignore[assignment]
        return whole(
            [starts[columns.passes[row], task] for row, task in zip(rows.tolist(), part.tolist(), strict=True)]
        )

    def in_block(self, p: Pass) -> bool:
        """Whether p runs inside an overlapped block of one duration."""
        return p in self._blocks

    def busy(self, device: int, stream: str = COMPUTE) -> list[tuple[int, int]]:
        """The (start, end) intervals in which a stream of a device works, in the schedule's order."""
        intervals: list[tuple[int, int]] = []
        for slot in self.schedule.orders[device]:
            if slot[0] in self._blocks:
                if stream == COMPUTE:
                    intervals.append((self.start(slot[0]), self.end(slot[0])))
                continue
            for p in slot:
                for task, part in self.problem.tasks(p):
                    if part.stream == stream:
                        intervals.append((self.starts[task], self.starts[task] + part.ticks))
        return intervals


def blocks(problem: Problem, schedule: Schedule) -> Whole:
    """The duration of the block that each row of the schedule's columns is part of; -1 where of none."""
    columns = schedule.columns
    if not problem.overlaps:
        return np.full(len(columns), -1)
    ticks = [block_ticks(problem, slot) for order in schedule.orders for slot in order for _ in slot]
    return whole([-1 if block is None else block for block in ticks])


def block_ticks(problem: Problem, slot: Slot) -> int | None:
    """The duration of a slot that runs as one overlapped block; None for every other slot."""
    return problem.overlapped_ticks(slot[0], slot[1]) if len(slot) == 2 else None
