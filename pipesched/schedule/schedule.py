"""A schedule: the order of passes on every device, without times; it is what a runtime executes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from pipesched.errors import BadInput
from pipesched.problem.passes import BW, F, Pass, Slot, parse_pass
from pipesched.schedule.pass_table import PassTable


@dataclass(frozen=True, repr=False)
class Schedule:
    """`orders[d]` is the sequence of slots of device d."""

    orders: tuple[tuple[Slot, ...], ...]
    name: str = ""

    def __repr__(self) -> str:
        columns = self.columns
        return f"<Schedule {self.name!r}: {len(columns)} passes on {columns.devices} devices>"

    @classmethod
    def from_table(cls, columns: PassTable, name: str = "") -> Schedule:
        """A schedule whose orders are made on first use: long ones are often only simulated and validated."""
        schedule = cls.__new__(cls)
        schedule.__dict__.update(columns=columns, name=name)
        return schedule

    def __getattr__(self, name: str) -> object:
        if name != "orders" or "columns" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.__dict__.setdefault("orders", self.columns.orders())

    @cached_property
    def fused(self) -> frozenset[tuple[int, int]]:
        """The (stage, micro-batch) pairs whose backward is fused."""
        return frozenset((p.stage, p.microbatch) for p in self.passes() if p.kind is BW)

    def is_fused(self, stage: int, microbatch: int) -> bool:
        return (stage, microbatch) in self.fused

    @cached_property
    def columns(self) -> PassTable:
        """The passes as columns of numbers."""
        return PassTable.of(self.orders)

    def passes(self) -> Iterator[Pass]:
        """Every pass, device by device, in order."""
        for device in range(len(self.orders)):
            yield from self.passes_on(device)

    def passes_on(self, device: int) -> tuple[Pass, ...]:
        """The passes of a device, in order."""
        return tuple(p for slot in self.orders[device] for p in slot)


def schedule_of(orders: Iterable[Iterable[Pass]], name: str = "") -> Schedule:
    """A schedule with no overlapped pairs."""
    return Schedule(tuple(tuple((p,) for p in order) for order in orders), name)


def slot_text(slot: Slot) -> str:
    """`F0.3`, or `F0.3&BW0.1` for an overlapped pair."""
    return "&".join(map(str, slot))


def parse_slot(text: str) -> Slot:
    """Read `slot_text` back; raises `BadInput`."""
    passes = tuple(map(parse_pass, text.split("&")))
    if len(passes) == 1:
        return (passes[0],)
    if len(passes) == 2 and passes[0].kind is F and passes[1].kind is not F:
        return passes[0], passes[1]
    raise BadInput(f"found {text!r}; a slot is one pass, or a forward and a backward joined by &: F0.3&BW0.1")


def overlapped(forward: Pass, backward: Pass) -> Slot:
    """A slot in which a forward and a backward run together."""
    return forward, backward
