"""The result of replanning an iteration under way: the start of all tasks, a value and a lower bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipesched.problem.attainable_spans import Value
from pipesched.problem.formatting import amount
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.problem.state import Ran, State
from pipesched.results.gap import gap
from pipesched.results.solution import Status
from pipesched.schedule.schedule import Schedule, Wait


@dataclass(frozen=True)
class Replanned:
    """A replanned iteration.

    `tasks` has the start and end of all tasks in ticks, with those of the given state unchanged; None if no order was
    found (`INFEASIBLE` if none fits, `UNKNOWN` if the time was too short). Tasks of length 0 at one tick run in the
    order of this mapping. `waits` are events between streams that memory needs. No order of the remaining tasks has a
    value less than `lower_bound` ticks. If the span is a fraction of a tick of the given state, `problem` and `state`
    have finer ticks. `notes` name parts of the search that were left out.
    """

    problem: Problem
    state: State
    status: Status
    lower_bound: Value
    tasks: Mapping[Task, Ran] | None = None
    waits: tuple[Wait, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> Ticks | None:
        """The end of the iteration, or its span, in ticks; None if no order was found."""
        if self.tasks is None:
            return None
        ends, starts = dict[int, int](), dict[int, int]()
        for task, one in self.tasks.items():
            device = self.problem.device(task.of)
            ends[device] = max(one.end, ends.get(device, 0))
            starts[device] = min(one.start, starts.get(device, one.start))
        span = self.problem.objective.by_device
        return max((end - (starts[device] if span else 0) for device, end in ends.items()), default=0)

    def orders(self) -> list[list[Task]]:
        """Return by device the tasks of all its streams in order of start; empty lists if no order was found."""
        tasks, devices = self.tasks or {}, range(self.problem.devices)
        return [
            sorted((one for one in tasks if self.problem.device(one.of) == device), key=tasks.__getitem__)
            for device in devices
        ]

    def schedule(self) -> Schedule | None:
        """Return the order of all tasks, those already begun included, without times; None if no order was found."""
        if self.tasks is None:
            return None
        passes = [tuple((p,) for p in dict.fromkeys(task.of for task in order)) for order in self.orders()]
        types, streams = self.problem.network.tasks, dict[Resource, list[Task]]()
        for task in sorted(self.tasks, key=self.tasks.__getitem__):
            for where in types[task.of.kind, task.of.stage][task.part].resources:
                streams.setdefault(where, []).append(task)
        if len(self.problem.streams) == 1 and not self.problem.network.occupies_several:
            return Schedule(tuple(passes), "replanned")
        orders = {where: tuple(tasks) for where, tasks in streams.items()}
        return Schedule(tuple(passes), "replanned", orders, self.waits)

    def text(self) -> str:
        """Return a line with the status, value, bound, gap and number of tasks, or why no order was found."""
        if self.value is None:
            why = "time ended before an order of what remains was found"
            why = "memory lets no order of what remains run to its end" if self.status is Status.INFEASIBLE else why
            return f"{self.status.value}: {why}"
        what = "tasks" if any(len(own) > 1 for own in self.problem.network.tasks.values()) else "passes"
        ran, whole = len(self.state.ran), len(self.tasks or ())
        begun = f"{ran} {what} as they have begun, {whole - ran} ordered by the search"
        value, bound = amount(self.problem, self.value), amount(self.problem, self.lower_bound)
        share = f"{100 * gap(self.value, self.lower_bound):.2f} %"
        name = "span" if self.problem.objective.by_device else "makespan"
        return f"{self.status.value}: {name} {value}, lower bound {bound}, gap {share}; {begun}"

    def document(self) -> dict[str, object]:
        """Return the result as a JSON object: `status`, `value`, `lower_bound`, `now`, `notes` and `orders`.

        The latter has by device the tasks of all its streams in order of start, each with `name`, `start`, `end`, and
        `fixed`, True if it had begun. Times are floats in the unit of the problem; the value is None, and orders are
        empty, if none was found.
        """
        units, tasks = self.problem.in_units, self.tasks or {}
        return {
            "status": self.status.value,
            "value": None if self.value is None else units(self.value),
            "lower_bound": units(self.lower_bound),
            "now": units(self.state.now),
            "notes": list(self.notes),
            "orders": [
                [
                    {"name": self.problem.task_text(one), "start": units(tasks[one].start),
                     "end": units(tasks[one].end), "fixed": one in self.state.ran}
                    for one in order
                ]
                for order in self.orders()
            ],
        }  # fmt: skip
