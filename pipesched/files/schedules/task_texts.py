"""Names of tasks in schedule files: orders of streams, waits between streams, and starts."""

from __future__ import annotations

from pipesched.errors import BadInput
from pipesched.files.schema_errors import shown
from pipesched.problem.network.task_network import Resource
from pipesched.problem.pass_names import pass_from
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, TaskPart, Ticks
from pipesched.schedule.schedule import Schedule, TaskOrders, Wait
from pipesched.schedule.timeline import Timeline


def task_keys(problem: Problem, schedule: Schedule) -> dict[str, object]:
    """Return the keys `task_orders` and `waits` of a schedule file, as far as the schedule has them.

    Tasks are given by name. `task_orders` is a list by device of the tasks of each stream, by the stream's name;
    `waits` is a list of pairs of which the second waits for the first.
    """
    keys: dict[str, object] = {}
    if schedule.task_orders:
        orders: list[dict[str, list[str]]] = [{} for _ in range(problem.devices)]
        for (device, stream), tasks in schedule.task_orders.items():
            orders[device][stream] = [problem.task_text(task) for task in tasks]
        keys["task_orders"] = orders
    if schedule.waits:
        keys["waits"] = [[problem.task_text(task) for task in wait] for wait in schedule.waits]
    return keys


def start_texts(timeline: Timeline) -> dict[str, Ticks]:
    """Return the start in ticks of every task by its name, pass by pass.

    A pass in an overlapped block is a single task.
    """
    problem, starts = timeline.problem, timeline.starts
    return {
        problem.task_text(task): starts[task]
        for p in timeline.schedule.passes()
        for task, _ in problem.tasks(p)
        if task.part == 0 or not timeline.in_block(p)
    }


class TaskReader:
    """Reader of the names by which schedule and state files call the tasks of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._parts: dict[tuple[object, int], dict[str, int]] = {}

    def task(self, text: str) -> Task:
        """Return the task called `F0.0`, `F0.0/attn` or `F0.0/attn.2`; `BadInput` if there is none.

        A task without a name is called by its index in the pass, as `F0.0/1`, the first by the pass alone.
        """
        of, _, name = text.partition("/")
        p = pass_from(self._problem, of)
        if (p.kind, p.stage) not in self._parts:
            self._parts[p.kind, p.stage] = self._names(p.stage, Task(p))
        part = self._parts[p.kind, p.stage].get(name)
        if part is None:
            known = ", ".join(f"{of}/{one}" if one else of for one in self._parts[p.kind, p.stage])
            raise BadInput(
                f"found {shown(text)}; allowed: the tasks of this pass, {known or 'of which there are none'}"
            )
        return Task(p, part)

    def _names(self, stage: StageId, first: Task) -> dict[str, TaskPart]:
        """Return the number of each task in a stage's pass, by the task's name.

        A pass that the problem does not have counts as one task, and is refused later.
        """
        if stage >= self._problem.placement.stages or first.of.kind not in self._problem.stages[stage].kinds:
            return {"": 0}
        texts = [self._problem.task_text(task) for task, _ in self._problem.tasks(first.of)]
        return {text.partition("/")[2]: part for part, text in enumerate(texts)}

    def orders(self, document: object) -> TaskOrders:
        """Return the orders of streams under the key `task_orders`; `BadInput` for another form.

        The document has for each device an object with the names of the tasks of each stream, in order.
        """
        devices = document if isinstance(document, list) else []
        if len(devices) != self._problem.devices or not all(isinstance(streams, dict) for streams in devices):
            raise BadInput(f"task_orders: found {shown(document)}; allowed: for each device the tasks of each stream")
        found: dict[Resource, tuple[Task, ...]] = {}
        for device, streams in enumerate(devices):
            for stream, tasks in streams.items():
                if stream not in self._problem.streams or not isinstance(tasks, list):
                    allowed = f"a list of tasks for {', '.join(self._problem.streams)}"
                    raise BadInput(f"task_orders[{device}]: found {shown(stream)}; allowed: {allowed}")
                where = f"task_orders[{device}].{stream}"
                found[Resource(device, stream)] = tuple(
                    self._named(f"{where}[{place}]", text) for place, text in enumerate(tasks)
                )
        return found

    def waits(self, document: object) -> tuple[Wait, ...]:
        """Return the waits under the key `waits`: pairs of tasks by name, of which the second waits for the first.

        `BadInput` for anything else.
        """
        pairs = document if isinstance(document, list) else []
        if not isinstance(document, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise BadInput(f"waits: found {shown(document)}; allowed: pairs of tasks, of which the second waits")
        return tuple(
            Wait(*(self._named(f"waits[{n}][{end}]", text) for end, text in enumerate(pair)))
            for n, pair in enumerate(pairs)
        )

    def _named(self, place: str, text: object) -> Task:
        """Return the task of a name; `BadInput` begins with its place in the file."""
        try:
            return self.task(str(text))
        except BadInput as error:
            raise BadInput(f"{place}: {error}") from None
