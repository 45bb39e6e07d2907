"""Pairs of passes made of tasks: forward and backward of a slot interleave, one computes while the other communicates.

A pass is cut into units of one task that computes with the communication tied to it: the communication after it in a
forward (attention with dispatch, experts with combine), before it in a backward (combine with experts, dispatch with
attention). The units of the two passes take turns:

    communication   combine B   dispatch F   dispatch B   combine F
    computation     attention F   experts B   experts F   attention B
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import zip_longest

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, RELOAD, B, F, Pass, Slot, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.schedule.schedule import Schedule, Wait

Tasks = list[tuple[Task, TaskSpec]]


class Weights(Enum):
    """Position of the weight tasks of a pair of passes, a forward and a backward that run together.

    `AFTER_THEIR_TASK`: each as soon as the backward's task that it waits for has run. `LAST`: all after the backward,
    while its gradient travels.
    """

    AFTER_THEIR_TASK = auto()  # as soon as the backward's task that they wait for has run
    LAST = auto()  # after the backward, while its gradient travels


def interleaved(
    problem: Problem, schedule: Schedule, weights: Weights = Weights.AFTER_THEIR_TASK, pairs_end_together: bool = False
) -> Schedule:
    """Return the schedule with the tasks of each pair (a forward and a backward in one slot) interleaved.

    Unchanged if passes are single tasks and no activation is copied back, or if some passes may run as blocks. A full
    backward of a pair is split where backwards may be split. Slots run one after the other on every stream.
    `pairs_end_together` lets computation wait at a pair's end for the forward's communication too. Copies to the host
    and back are slots of their own, on their own streams: tasks that take memory then wait for memory freed by earlier
    slots, limited or not, and a pair for the activation of its backward.
    """
    copied = {p for p in schedule.pass_set if p.kind is RELOAD}
    if (_one_task_each(problem) and not copied) or problem.network.blocks:
        return schedule
    orders: list[tuple[Slot, ...]] = []
    streams: dict[Resource, list[Task]] = {}
    waits: list[Wait] = []
    for device, order in enumerate(schedule.orders):
        slots = [_split(problem, slot) for slot in order]
        orders.append(tuple((p,) for slot in slots for p in slot))
        events = _Events(problem, limited=bool(copied) or problem.room[device] is not None)
        for slot in asking(slots, SHORT):
            launched = _launched(problem, slot, weights)
            waits += events.before(slot, launched)
            waits += [Wait(Task(back), Task(slot[0])) for p in slot[1:2] if (back := p._replace(kind=RELOAD)) in copied]
            for task, part in launched:
                streams.setdefault(Resource(device, part.stream), []).append(task)
            events.after(slot, launched, pairs_end_together)
    task_orders = {where: tuple(tasks) for where, tasks in streams.items()}
    return Schedule(tuple(orders), schedule.name, task_orders, waits)


def _one_task_each(problem: Problem) -> bool:
    """True if every pass is one task, not counting tasks that occupy several streams, whose order is added later.

    False also where some passes are optional, are collectives, or wait for those of another chain.
    """
    network = problem.network
    if not network.occupies_several:
        return network.one_task_each
    alone = [[task for task in tasks if len(task.resources) == 1] for tasks in network.tasks.values()]
    streams = {task.resources[0] for own in alone for task in own}
    one_each = all(len(own) == 1 for own in alone) and len(streams) == len({stream.device for stream in streams})
    return network.has_plain_chains and one_each


def _split(problem: Problem, slot: Slot) -> tuple[Pass, ...]:
    """Return the passes of a slot, with the full backward of a pair as B and W where it can be split."""
    if len(slot) == 1 or slot[1].kind is not BW or not problem.pipeline.splits:
        return slot
    return slot[0], slot[1]._replace(kind=B), slot[1]._replace(kind=W)


def _launched(problem: Problem, slot: Sequence[Pass], weights: Weights) -> Tasks:
    """Return all tasks of a slot in one sequence, whose order every stream follows for its own tasks."""
    if len(slot) == 1:
        return list(problem.tasks(slot[0]))
    forward, backward = (list(problem.tasks(p)) for p in slot[:2])
    after_part: dict[int, Tasks] = {}
    for task, part in problem.tasks(slot[2]) if len(slot) > 2 else ():
        after = len(backward) - 1 if part.after is None or weights is Weights.LAST else part.after
        after_part.setdefault(after, []).append((task, part))
    found: Tasks = []
    nothing: Tasks = []
    units = zip_longest(_forward_units(problem, forward), _backward_units(problem, backward), fillvalue=nothing)
    for one, other in units:
        leading = _communication(problem, other)
        found += other[:leading] + one[:1] + other[leading:]
        found += [each for task, _ in other for each in after_part.get(task.part, ())]
        found += one[1:]
    return found


def _forward_units(problem: Problem, tasks: Tasks) -> Iterator[Tasks]:
    """Yield the tasks of a forward cut into units: each compute task with the communication tasks after it."""
    unit: Tasks = []
    for task in tasks:
        if unit and task[1].stream == problem.streams[0]:
            yield unit
            unit = []
        unit.append(task)
    yield unit


def _backward_units(problem: Problem, tasks: Tasks) -> Iterator[Tasks]:
    """Yield the tasks of a backward cut into units: each compute task with the communication tasks before it.

    Communication after the last compute task is a unit of its own.
    """
    unit: Tasks = []
    for task in tasks:
        unit.append(task)
        if task[1].stream == problem.streams[0]:
            yield unit
            unit = []
    if unit:
        yield unit


def _communication(problem: Problem, unit: Tasks) -> int:
    """Return the number of communication tasks (not on the first stream) in a unit."""
    return sum(part.stream != problem.streams[0] for _, part in unit)


class _Events:
    """Waits between two streams of one device, found slot by slot in the order of the device.

    `before` gives those of a slot: for memory that earlier slots free (if `limited`), and for the end of the previous
    pair's forward, where pairs end together. `after` records what later slots may wait for.
    """

    def __init__(self, problem: Problem, limited: bool) -> None:
        self._problem, self._limited = problem, limited
        # By stream, the last task of a pass that frees memory; and the streams that have waited for it.
        self._giving: dict[str, Task] = {}
        self._known: set[tuple[str, str]] = set()
        self._pair_ends: list[Task] = []

    def before(self, slot: Sequence[Pass], launched: Tasks) -> Iterator[Wait]:
        """Yield the waits before a slot: for memory that earlier slots release, and for the end of the previous pair.

        `launched` are the slot's tasks in order.
        """
        if self._pair_ends:
            first = next((task for task, part in launched if part.stream == self._problem.streams[0]), None)
            if first is not None:
                yield from (Wait(end, first) for end in self._pair_ends)
                self._pair_ends = []
        changes = self._problem.network.change
        for p in slot if self._limited else ():
            if max(changes[p.kind, p.stage]) <= 0:
                continue
            first, part = next(iter(self._problem.tasks(p)))
            for stream, task in self._giving.items():
                if stream != part.stream and (stream, part.stream) not in self._known:
                    self._known.add((stream, part.stream))
                    yield Wait(task, first)

    def after(self, slot: Sequence[Pass], launched: Tasks, pairs_end_together: bool) -> None:
        """Record a slot's tasks that release memory, and, with `pairs_end_together`, the end of its forward.

        The next slot waits for that.
        """
        network, streams = self._problem.network, self._problem.streams
        for p in slot:
            if min(network.change[p.kind, p.stage]) < 0:
                specs = dict(self._problem.tasks(p))
                for part in network.ends[p.kind, p.stage]:
                    stream = specs[Task(p, part)].stream
                    self._giving[stream] = Task(p, part)
                    self._known = {(one, other) for one, other in self._known if one != stream}
        if pairs_end_together and slot[0].kind is F and len(slot) > 1:
            forward = [(task, part) for task, part in launched if task.of == slot[0]]
            end = network.ends[slot[0].kind, slot[0].stage][-1]
            self._pair_ends = [task for task, part in forward if task.part == end and part.stream != streams[0]]
