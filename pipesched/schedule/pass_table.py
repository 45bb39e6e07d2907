"""The pass table: a schedule as NumPy columns, one row for each pass, for vectorised computations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import cast

import numpy as np
from numpy.typing import NDArray

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import PassType
from pipesched.problem.passes import Pass, PassKind, Slot
from pipesched.problem.quantities import DeviceId, StageId

Ints = NDArray[np.int64]
# Integers of any size: int64 where they surely fit, Python objects otherwise.
Whole = NDArray[np.int64] | NDArray[np.object_]


class PassTable:
    """The passes of a schedule in arrays, device by device in execution order.

    `device`, `slot` (the position in the device's order) and `microbatch` have an entry for each row. `pass_types`
    lists the (kind, stage) pairs that occur, and `pass_type` is each row's index into it. Rows of one slot are
    adjacent.
    """

    def __init__(
        self,
        devices: int,
        device: Ints,
        slot: Ints,
        microbatch: Ints,
        pass_type: Ints,
        pass_types: Sequence[PassType],
    ) -> None:
        self.devices, self.device, self.slot = devices, device, slot
        self.microbatch, self.pass_type, self.pass_types = microbatch, pass_type, list(pass_types)

    @classmethod
    def of(cls, orders: Sequence[Sequence[Slot]]) -> PassTable:
        """Return the table of these orders, one for each device."""
        passes = [p for order in asking(orders) for slot in order for p in slot]
        widths = [len(slot) for order in orders for slot in order]
        lengths = list(map(len, orders))
        device = np.repeat(np.repeat(np.arange(len(orders)), lengths), widths)
        slot = np.repeat(np.concatenate([np.arange(0), *map(np.arange, lengths)]), widths)
        microbatch = np.array([p[2] for p in passes], np.int64)
        places: dict[tuple[PassKind, int], int] = {}
        pass_type = np.array([places.setdefault(p[:2], len(places)) for p in passes], np.int64)
        columns = cls(len(orders), device, slot, microbatch, pass_type, list(places))
        columns.passes = passes
        return columns

    def __len__(self) -> int:
        return len(self.device)

    @cached_property
    def passes(self) -> list[Pass]:
        """The pass of every row."""
        rows = zip(self.pass_type.tolist(), self.microbatch.tolist(), strict=True)
        of = self.pass_types
        return [Pass(kind, stage, j) for pass_type, j in asking(rows, SHORT) for kind, stage in (of[pass_type],)]

    def orders(self) -> tuple[tuple[Slot, ...], ...]:
        """Return for each device its slots (passes, or overlapped pairs) in order."""
        passes, found = iter(self.passes), []
        for device in asking(range(self.devices)):
            widths = np.bincount(self.slot[self.on(device)]).tolist()
            found.append(tuple([cast(Slot, tuple(islice(passes, width))) for width in widths]))
        return tuple(found)

    def each(self, of: Callable[[PassKind, StageId], int], times: int = 4, rows: slice = slice(None)) -> Whole:
        """Return an array with the value of `of(kind, stage)` for the pass of every row, or for the rows in `rows`.

        The result has integers so wide that up to `times` of its numbers can be added without overflow.
        """
        return whole([of(kind, stage) for kind, stage in self.pass_types], times)[self.pass_type[rows]]

    def on(self, device: DeviceId) -> slice:
        """Return the slice of the rows of a device, which are adjacent."""
        return slice(*np.searchsorted(self.device, (device, device + 1)).tolist())

    def rows(self, kind: PassKind, stage: StageId) -> Ints:
        """Return the rows of a stage's passes of one kind, ordered by micro-batch, for every micro-batch of the table.

        -1 for a micro-batch without such a pass.
        """
        if (kind, stage) not in self.pass_types:
            return np.full(self._rows.shape[1], -1)
        found: Ints = self._rows[self.pass_types.index((kind, stage))]
        return found

    @cached_property
    def _numbers(self) -> tuple[Ints, Ints]:
        """The micro-batches of the table in ascending order, and the index of each row's among them."""
        numbers, place = np.unique(self.microbatch, return_inverse=True)
        return numbers, place

    @property
    def microbatches(self) -> Ints:
        """The micro-batches of the table, in ascending order."""
        return self._numbers[0]

    @cached_property
    def _rows(self) -> Ints:
        numbers, place = self._numbers
        rows = np.full((len(self.pass_types), len(numbers)), -1)
        rows[self.pass_type, place] = np.arange(len(self))
        return rows

    @cached_property
    def duplicate(self) -> Pass | None:
        """A pass that appears twice in the table; None if there is none."""
        if np.count_nonzero(self._rows >= 0) == len(self):
            return None
        return Counter(self.passes).most_common(1)[0][0]


def whole(numbers: Sequence[int] | Ints, times: int = 4) -> Whole:
    """Return the numbers as an array of 64-bit integers, or of Python integers if they are too large for that.

    They are too large if `times` times the largest of them, by magnitude, is 2^62 or more.
    """
    if isinstance(numbers, np.ndarray) and numbers.dtype == np.int64:
        fits = not len(numbers) or int(np.abs(numbers).max()) * times < 2**62
    else:
        fits = max(map(abs, numbers), default=0) * times < 2**62
    return np.array(numbers, np.int64) if fits else np.array(numbers, object)
