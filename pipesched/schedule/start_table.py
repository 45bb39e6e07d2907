"""The start table: start times of all tasks as arrays, usable as a mapping from task to tick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import Task
from pipesched.problem.quantities import Ticks
from pipesched.schedule.pass_table import Ints, PassTable, Whole


class StartTable(Mapping[Task, Ticks]):
    """Start times of tasks: task `part` of row r of `columns` starts at tick `ticks[first[r] + part]`.

    Row r has `parts[r]` tasks.
    """

    def __init__(self, columns: PassTable, first: Ints, parts: Ints, ticks: Whole) -> None:
        self.columns, self.first, self.parts, self.ticks = columns, first, parts, ticks

    def of(self, rows: Ints, part: Ints) -> Whole:
        """Return the starts, in ticks, of these tasks: `part[i]` of the pass in row `rows[i]`."""
        found: Whole = self.ticks[self.first[rows] + part]
        return found

    def right_for(self, columns: PassTable, parts: Ints) -> bool:
        """Return True if these starts belong to exactly this table of passes, and no start is before time 0.

        `parts` is the number of tasks of each row. False also for an equal table that is another object: callers then
        compare the tasks one by one.
        """
        return self.columns is columns and bool((self.parts == parts).all() and (self.ticks >= 0).all())

    @cached_property
    def _tasks(self) -> dict[Task, Ticks]:
        ticks = self.ticks.tolist()
        rows = zip(self.columns.passes, self.first.tolist(), self.parts.tolist(), strict=True)
        return {Task(p, part): ticks[first + part] for p, first, parts in asking(rows, SHORT) for part in range(parts)}

    def __getitem__(self, task: Task) -> Ticks:
        return self._tasks[task]

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return int(self.parts.sum())

    def __repr__(self) -> str:
        return f"Starts({self._tasks!r})"
