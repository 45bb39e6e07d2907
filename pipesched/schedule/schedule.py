"""Schedules: the order of passes and tasks on every device, without times, as a runtime executes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import NoneType
from typing import NamedTuple

from pipesched.arguments import refuse_other
from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.html_of import html_of
from pipesched.problem.network.task_network import Resource
from pipesched.problem.pass_names import pass_from, pass_text
from pipesched.problem.passes import BW, F, Pass, Slot, Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MicrobatchId, StageId
from pipesched.schedule.pass_table import PassTable


class Wait(NamedTuple):
    """An event between two streams: `after` starts when `before` has ended, whatever the durations."""

    before: Task
    after: Task


# The order of tasks on a stream of a device, for every stream.
TaskOrders = Mapping[Resource, tuple[Task, ...]]

_PASSES_OF_DEVICES = "a list of passes for each device; a published schedule is HEURISTICS['gpipe'].order(problem)"


class Schedule:
    """A schedule: `orders[d]` is the sequence of slots of device d, `name` the schedule's name.

    Each stream of a device runs the tasks of these passes one pass after the other, unless `task_orders` gives the
    order of each stream's tasks. `waits` are further events between streams, which a runtime has to keep too. Long
    orders may be given as a table; tuples are then made on first use, since many schedules are only simulated and
    validated.
    """

    def __init__(
        self,
        orders: tuple[tuple[Slot, ...], ...] | PassTable,
        name: str = "",
        task_orders: TaskOrders | None = None,
        waits: Iterable[Wait] = (),
    ) -> None:
        self._given, self.name = orders, name
        self.task_orders, self.waits = dict(task_orders or {}), tuple(waits)

    def __repr__(self) -> str:
        columns = self.columns
        return f"<Schedule {self.name!r}: {len(columns)} passes on {columns.devices} devices>"

    def _repr_html_(self) -> str | None:
        """Return the orders as rows of passes, for notebooks.

        None, which shows plain text, if no HTML is known for it.
        """
        return html_of(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._content == other._content

    def __hash__(self) -> int:
        return hash((self.orders, self.name))

    @property
    def _content(self) -> tuple[object, ...]:
        return self.orders, self.name, self.task_orders, self.waits

    @cached_property
    def orders(self) -> tuple[tuple[Slot, ...], ...]:
        """The slots (passes, or overlapped pairs) of each device, in order."""
        return self._given.orders() if isinstance(self._given, PassTable) else self._given

    @cached_property
    def columns(self) -> PassTable:
        """The passes as a table of NumPy columns, with a row for each pass, device by device in order."""
        return self._given if isinstance(self._given, PassTable) else PassTable.of(self._given)

    @cached_property
    def fused(self) -> frozenset[tuple[StageId, MicrobatchId]]:
        """The (stage, micro-batch) pairs whose backward is fused."""
        return frozenset((p.stage, p.microbatch) for p in self.passes() if p.kind is BW)

    @cached_property
    def pass_set(self) -> frozenset[Pass]:
        """All passes of the schedule."""
        return frozenset(self.passes())

    def is_fused(self, stage: StageId, microbatch: MicrobatchId) -> bool:
        return (stage, microbatch) in self.fused

    def passes(self) -> Iterator[Pass]:
        """Yield every pass, device by device, in order."""
        for device in asking(range(len(self.orders))):
            yield from self.passes_on(device)

    def passes_on(self, device: DeviceId) -> tuple[Pass, ...]:
        """Return the passes of a device, in order."""
        return tuple(p for slot in asking(self.orders[device], SHORT) for p in slot)


def schedule_of(orders: Iterable[Iterable[Pass]], name: str = "") -> Schedule:
    """Return a schedule without overlapped pairs, from the passes of each device in order.

    `BadInput` if `orders` or one of them is no iterable, or the first entry of one is no `Pass`; others are not
    checked.
    """
    refuse_other("schedule_of", orders, Iterable, _PASSES_OF_DEVICES)
    rows = []
    for order in asking(orders):
        refuse_other("schedule_of", order, Iterable, _PASSES_OF_DEVICES)
        rows.append(tuple((p,) for p in order))
        refuse_other("schedule_of", rows[-1][0][0] if rows[-1] else None, (Pass, NoneType), _PASSES_OF_DEVICES)
    return Schedule(tuple(rows), name)


def slot_text(slot: Slot, problem: Problem | None = None) -> str:
    """Return `F0.3`, or `F0.3&BW0.1` for an overlapped pair.

    Passes are named as in the files of this problem (`pass_text`); without one by the numbers that they have.
    """
    return "&".join(str(p) if problem is None else pass_text(problem, p) for p in slot)


def parse_slot(text: str, problem: Problem | None = None) -> Slot:
    """Return the slot of a text written by `slot_text`; `BadInput` for any other text."""
    passes = tuple(parse_pass(one) if problem is None else pass_from(problem, one) for one in text.split("&"))
    if len(passes) == 1:
        return (passes[0],)
    if len(passes) == 2 and passes[0].kind is F and passes[1].kind is not F:
        return passes[0], passes[1]
    raise BadInput(f"found {text!r}; a slot is one pass, or a forward and a backward joined by &: F0.3&BW0.1")


def overlapped(forward: Pass, backward: Pass) -> Slot:
    """Return a slot in which a forward and a backward run together; the two are not checked."""
    return forward, backward
