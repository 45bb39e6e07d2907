"""The precedence graph of a schedule: the predecessors of every task, computed for all passes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipesched.deadline import SHORT, ask, asking
from pipesched.errors import BadInput
from pipesched.problem.network.task_network import TaskType
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import F, Pass, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.gathered import gathered
from pipesched.schedule.microbatch_factors import by_microbatch
from pipesched.schedule.pass_table import Ints, Whole, whole
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.start_table import StartTable
from pipesched.schedule.stream_orders import stream_orders
from pipesched.schedule.timeline import Timeline, blocks
from pipesched.simulation.longest_path import MANY, Numbers, compiled, fits

# A node of the graph: an index in `Graph.tasks`.
Node: TypeAlias = int
# Nodes that are waited for, those that wait, and for how many ticks past their end: all as long, or each its own.
Arcs = tuple[Ints, Ints, int | Whole]
Bools = NDArray[np.bool_]


def _lags(arcs: Sequence[Arcs]) -> Whole:
    """Return the lags of all arcs, in ticks, as one array."""
    alike = [lag for _, _, lag in arcs if isinstance(lag, int)]
    if len(alike) == len(arcs):
        return whole(alike).repeat([len(arc[0]) for arc in arcs])
    return whole([one for arc in arcs for one in np.broadcast_to(arc[2], len(arc[0])).tolist()])


class Graph:
    """The precedence graph: nodes are tasks and overlapped blocks of two passes, by number.

    `ticks[n]` is a node's duration. The successors of node n are `after[k]` for k from `at[n]` to `at[n + 1]`
    (exclusive); each waits until `lag[k]` ticks after the end of n. `missing[n]` is the number of its predecessors.
    `opening[d]` and `closing[d]` are the nodes that are first and last on a stream of device d that it does not share.
    The numbers of a `long` graph are arrays, those of others lists.

    `schedule` is the given one, with orders of tasks where some tasks occupy several resources. `BadInput` if a pass
    appears twice or lacks one that it needs, or an order of tasks is not of the tasks that run; `Deadlock` if no order
    of tasks that occupy several resources can run. Other cycles are found when it is run.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        if problem.network.occupies_several and (given := stream_orders(problem, schedule)) is not schedule.task_orders:
            orders = {where: tuple(tasks) for where, tasks in given.items()}
            schedule = Schedule(schedule.orders, schedule.name, orders, schedule.waits)
        self.schedule = schedule
        self._columns = columns = schedule.columns
        if columns.duplicate is not None:
            raise BadInput(f"{columns.duplicate} appears twice in the schedule")
        of, streams, self.text = problem.network.tasks, problem.streams, problem.task_text
        block = blocks(problem, schedule)
        # The second pass of a block has no node of its own.
        joined = (block >= 0) & columns.each(lambda kind, _: kind is not F).astype(bool)
        parts = np.where(block < 0, columns.each(lambda *pass_type: len(of[pass_type])), ~joined).astype(np.int64)
        self._first = np.cumsum(parts) - parts - joined
        self._last = self._first + np.maximum(parts, 1) - 1
        row = np.repeat(np.arange(len(parts)), parts)
        part = np.arange(len(row)) - self._first[row]
        in_block = block[row] >= 0
        # The tasks of every pass type, one type behind the other, and where each node's is among them.
        tasks = [each for pass_type in columns.pass_types for each in of[pass_type]]
        begin = np.cumsum([0, *(len(of[pass_type]) for pass_type in columns.pass_types)])
        task = begin[columns.pass_type[row]] + part
        alone = by_microbatch(problem, whole([each.ticks for each in tasks])[task], columns.microbatch[row])
        ticks = np.where(in_block, block[row], alone)
        first = [each.resources[0] for each in tasks]
        stream = np.array([streams.index(each.stream) for each in first], np.int64)[task]
        device, shared = columns.device[row], np.zeros(len(row), bool)
        common = {(device, one.stream) for one in problem.resources.shared_streams for device in one.devices}
        if common:
            # A stream that devices share is one of their first device's.
            owner = np.array([each.device for each in first], np.int64)[task]
            shared = np.array([tuple(each) in common for each in first], bool)[task]
            device = np.where(shared, owner, device)
        on, node = device * len(streams) + np.where(in_block, 0, stream), np.arange(len(row))
        if problem.network.occupies_several:
            for number, each in enumerate(tasks):
                here = np.flatnonzero((task == number) & ~in_block)
                for where in each.resources[1:]:
                    node = np.concatenate((node, here))
                    on = np.append(on, np.full(len(here), where.device * len(streams) + streams.index(where.stream)))
                    shared = np.append(shared, np.full(len(here), tuple(where) in common))
        places = self._places(schedule, streams, node, on)
        arcs = [self._stream_arcs(problem.devices, len(streams), node, on, places, shared)]
        arcs += [*self._precedences(problem), *self._events(schedule), *self._gathers(problem, schedule)]
        before, after = (np.concatenate([arc[end] for arc in arcs]) for end in (0, 1))
        lag = _lags(arcs)
        order = np.argsort(before, kind="stable")
        at = np.searchsorted(before[order], np.arange(len(ticks) + 1))
        missing = np.bincount(after, minlength=len(ticks))
        self.long = len(ticks) >= MANY and fits(ticks, lag)
        numbers: list[Numbers] = [at, after[order], lag[order], ticks, missing]
        if not self.long:
            numbers = [column.tolist() for column in numbers]
        self.at, self.after, self.lag, self.ticks, self.missing = numbers

    def _places(self, schedule: Schedule, streams: Sequence[str], nodes: Ints, on: Ints) -> Ints:
        """Return the place of each node in the order of its stream.

        That is as the schedule orders tasks, else the order of rows. The first entries are of each node's first stream,
        the others of further ones. `BadInput` if an order of tasks lacks one of its stream, or has one twice or of
        another stream.
        """
        if not schedule.task_orders:
            return np.arange(len(on))
        places, count = np.full(len(on), -1), int(self._last.max(initial=-1)) + 1
        pairs = zip(nodes[count:].tolist(), on[count:].tolist(), strict=True)
        further = {pair: count + number for number, pair in enumerate(pairs)}
        for (device, stream), tasks in schedule.task_orders.items():
            number = streams.index(stream) if stream in streams else -1
            for place, task in enumerate(tasks):
                node, where = self._node(task), device * len(streams) + number
                entry = node if on[node] == where else further.get((node, where), -1)
                if number < 0 or entry < 0:
                    raise BadInput(f"{self.text(task)} is in the order of device {device}, {stream}, and not run there")
                if places[entry] >= 0:
                    raise BadInput(f"{self.text(task)} appears twice in the orders of tasks")
                places[entry] = place
        if (places < 0).any():
            node = int(nodes[np.argmin(places)])
            row = int(np.argmax(self._last >= node))
            task = Task(self._columns.passes[row], node - int(self._first[row]))
            raise BadInput(f"{self.text(task)} is not in the order of its stream")
        return places

    def _stream_arcs(self, devices: int, streams: int, nodes: Ints, on: Ints, places: Ints, shared: Bools) -> Arcs:
        """Return the arcs between consecutive nodes of each stream, and set `opening` and `closing`.

        Entry k says that node `nodes[k]` is `on` a stream, by its number among those of all devices. Copies on a
        `shared` stream open and close no device: a forward precedes them and a backward follows. `places[k]` is the
        entry's place in the order of that stream.
        """
        order = np.lexsort((places, on))
        one, other = order[:-1], order[1:]
        same = on[one] == on[other]
        self.opening: list[list[int]] = [[] for _ in range(devices)]
        self.closing: list[list[int]] = [[] for _ in range(devices)]
        for found, ends in ((self.opening, [*order[:1], *other[~same]]), (self.closing, [*one[~same], *order[-1:]])):
            for entry in ends:
                if not shared[entry]:
                    found[on[entry] // streams].append(int(nodes[entry]))
        return nodes[one[same]], nodes[other[same]], 0

    def _precedences(self, problem: Problem) -> Iterator[Arcs]:
        """Yield the arcs of the task network for every micro-batch, as nodes (earlier, later) and lags.

        `BadInput` if the schedule lacks a pass that another one needs.
        """
        columns, nodes = self._columns, cache(self._nodes)
        for pass_type in asking(columns.pass_types):
            for after, alternatives, lag, optional, share in problem.network.arcs_into[pass_type]:
                later = nodes(after)
                # Of alternatives the schedule holds one.
                earlier = reduce(np.maximum, map(nodes, alternatives))
                rows = columns.rows(*pass_type)
                if share is not None:
                    before, after_it = share.pairs()
                    earlier, later, rows = (
                        self._at(before, earlier),
                        self._at(after_it, later),
                        self._at(after_it, rows),
                    )
                both = later >= 0
                if optional:
                    both &= earlier >= 0
                later, earlier = later[both], earlier[both]
                if (earlier < 0).any():
                    p = columns.passes[rows[both][np.argmin(earlier)]]
                    needed = p._replace(kind=alternatives[0].kind, stage=alternatives[0].stage)
                    late, early = pass_text(problem, p), pass_text(problem, needed)
                    raise BadInput(f"{late} needs {early}, which the schedule does not hold")
                # The tasks of a pass in a block are one node.
                apart = (earlier != later) | (alternatives[0].pass_type != pass_type)
                if problem.walks.scale and lag:
                    lags = by_microbatch(problem, np.full(len(both), lag), columns.microbatch[rows])
                    yield earlier[apart], later[apart], lags[both][apart]
                else:
                    yield earlier[apart], later[apart], lag

    def _events(self, schedule: Schedule) -> Iterator[Arcs]:
        """Yield the arcs of the schedule's waits between streams."""
        if schedule.waits:
            before, after = ([self._node(task) for task in tasks] for tasks in zip(*schedule.waits, strict=True))
            yield np.array(before, np.int64), np.array(after, np.int64), 0

    def _gathers(self, problem: Problem, schedule: Schedule) -> Iterator[Arcs]:
        """Yield the arcs of gathered parameters: passes wait for the gathering, and the drop waits for the passes."""
        pairs: list[tuple[Task, Task]] = []
        dropped: dict[int, Task] = {}
        for one in gathered(problem, schedule):
            gather, users, release = one.gather, one.users, one.release
            pairs += [] if one.makes_room is None else [(Task(one.makes_room), Task(gather))]
            tasks = {p: range(len(problem.tasks_of(p.kind, p.stage))) for p in users}
            pairs += [(Task(gather), Task(p, part)) for p, parts in tasks.items() for part in parts]
            if gather.stage in dropped:
                pairs.append((dropped[gather.stage], Task(gather)))
            if release is not None:
                dropped[gather.stage] = Task(release)
                ends = [(p, part) for p in users for part in problem.dependencies.ends_of(p.kind, p.stage)]
                pairs += [(Task(*end), Task(release)) for end in ends] + [(Task(gather), Task(release))]
        if pairs:
            before, after = ([self._node(task) for task in tasks] for tasks in zip(*pairs, strict=True))
            yield np.array(before, np.int64), np.array(after, np.int64), 0

    @cached_property
    def _row_of(self) -> dict[Pass, int]:
        return {p: row for row, p in enumerate(self._columns.passes)}

    def _node(self, task: Task) -> Node:
        row = self._row_of.get(task.of)
        if row is None:
            raise BadInput(f"{self.text(task)} is in the order of a stream, and {task.of} is not in the schedule")
        return int(min(self._first[row] + task.part, self._last[row]))

    def _nodes(self, task: TaskType) -> Ints:
        """Return by micro-batch of the schedule, in ascending order, the node of a task.

        -1 where the schedule lacks it.
        """
        rows = self._columns.rows(task.kind, task.stage)
        return np.where(rows >= 0, np.minimum(self._first[rows] + task.part, self._last[rows]), -1)

    def _at(self, microbatches: Ints, each: Ints) -> Ints:
        """Return the entries of `each` at the micro-batches `microbatches`.

        `each` has one for each micro-batch of the schedule; -1 for one that it lacks.
        """
        known = self._columns.microbatches
        place = np.minimum(np.searchsorted(known, microbatches), len(known) - 1)
        return np.where(known[place] == microbatches, each[place], -1)

    @cached_property
    def waits(self) -> list[list[tuple[Node, Ticks]]]:
        """Return for each node the (node, lag in ticks) pairs that it waits for."""
        waits: list[list[tuple[int, int]]] = [[] for _ in self.ticks]
        for node, (begin, end) in asking(enumerate(pairwise(self.at)), SHORT):
            for k in range(begin, end):
                waits[self.after[k]].append((node, self.lag[k]))
        return waits

    @cached_property
    def tasks(self) -> list[tuple[Task, ...]]:
        """The tasks of each node: one, or the first tasks of the two passes of a block."""
        tasks: list[list[Task]] = [[] for _ in self.ticks]
        rows = zip(self._columns.passes, self._first.tolist(), self._last.tolist(), strict=True)
        for p, first, last in asking(rows, SHORT):
            for node in range(first, last + 1):
                tasks[node].append(Task(p, node - first))
        return list(map(tuple, tasks))

    def starts_in(self, timeline: Timeline) -> Whole:
        """Return the start of each node, in ticks, in a timeline of the same schedule."""
        parts = self._last - self._first + 1
        joined = np.diff(self._last, prepend=-1) == 0
        rows = np.repeat(np.arange(len(parts)), np.where(joined, 0, parts))
        return timeline.starts_of(rows, np.arange(len(rows)) - self._first[rows])

    def column(self, number: int) -> Numbers:
        """Return a list, or an array if the graph is long, with this number for every node."""
        return np.full(len(self.ticks), number, np.int64) if self.long else [number] * len(self.ticks)

    def run(self, kernel: Callable[..., int], *columns: Numbers) -> int:
        """Run `kernel`, a function of `longest_path`, on this graph's arcs and durations.

        Return what the function returns. `columns` are its further arguments, each with an entry for each node, such as
        the starts that it fills in. On long graphs it runs compiled.
        """
        ask()
        function = compiled(kernel) if self.long else kernel
        return function(self.at, self.after, self.lag, self.ticks, *columns)

    def starts(self, ticks: Numbers) -> StartTable:
        """Return the start table of all tasks from the start of each node, in ticks."""
        return StartTable(self._columns, self._first, self._last - self._first + 1, whole(ticks))
