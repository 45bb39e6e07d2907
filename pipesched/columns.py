"""A schedule as columns of numbers, one row for each pass: for what is asked of all of them at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from pipesched.passes import Pass, PassKind

if TYPE_CHECKING:
    from pipesched.schedule import Slot

Ints = NDArray[np.int64]
# Whole numbers of any size: numpy's where they surely fit 64 bits, Python's own otherwise.
Whole = NDArray[np.int64] | NDArray[np.object_]


class Columns:
    """The passes of a schedule, device by device and in the order they run there.

    `device`, `slot` (its place in the device's order) and `microbatch` have an entry for each row. `sorts` are the
    kinds and stages there are, and `sort` has each row's place among them. Rows of one slot stand together.
    """

    def __init__(
        self,
        devices: int,
        device: Ints,
        slot: Ints,
        microbatch: Ints,
        sort: Ints,
        sorts: Sequence[tuple[PassKind, int]],
    ) -> None:
        self.devices, self.device, self.slot = devices, device, slot
        self.microbatch, self.sort, self.sorts = microbatch, sort, list(sorts)

    @classmethod
    def of(cls, orders: Sequence[Sequence[Slot]]) -> Columns:
        """The columns of these orders, one order a device."""
        passes = [p for order in orders for slot in order for p in slot]
        widths = [len(slot) for order in orders for slot in order]
        lengths = list(map(len, orders))
        device = np.repeat(np.repeat(np.arange(len(orders)), lengths), widths)
        slot = np.repeat(np.concatenate([np.arange(0), *map(np.arange, lengths)]), widths)
        microbatch = np.array([p[2] for p in passes], np.int64)
        places: dict[tuple[PassKind, int], int] = {}
        sort = np.array([places.setdefault(p[:2], len(places)) for p in passes], np.int64)
        columns = cls(len(orders), device, slot, microbatch, sort, list(places))
        columns.passes = passes
        return columns

    def __len__(self) -> int:
        return len(self.device)

    @cached_property
    def passes(self) -> list[Pass]:
        """Every row's pass."""
        rows = zip(self.sort.tolist(), self.microbatch.tolist(), strict=True)
        return [Pass(kind, stage, j) for sort, j in rows for kind, stage in (self.sorts[sort],)]

    def orders(self) -> tuple[tuple[Slot, ...], ...]:
        """The slots of every device in their order."""
        passes, found = iter(self.passes), []
        for device in range(self.devices):
            widths = np.bincount(self.slot[self.on(device)]).tolist()
            found.append(tuple([cast("Slot", tuple(islice(passes, width))) for width in widths]))
        return tuple(found)

    def each(self, of: Callable[[PassKind, int], int], times: int = 4) -> Whole:
        """What a function says of each row's kind and stage; `times` as for `whole`."""
        return whole([of(kind, stage) for kind, stage in self.sorts], times)[self.sort]

    def on(self, device: int) -> slice:
        """The rows of a device."""
        return slice(*np.searchsorted(self.device, (device, device + 1)).tolist())

    def rows(self, kind: PassKind, stage: int) -> Ints:
        """The row of this kind and stage for each of the micro-batches there are, in ascending order; -1 for none."""
        if (kind, stage) not in self.sorts:
            return np.full(self._rows.shape[1], -1)
        found: Ints = self._rows[self.sorts.index((kind, stage))]
        return found

    @cached_property
    def _rows(self) -> Ints:
        numbers, place = np.unique(self.microbatch, return_inverse=True)
        rows = np.full((len(self.sorts), len(numbers)), -1)
        rows[self.sort, place] = np.arange(len(self))
        return rows

    @cached_property
    def twin(self) -> Pass | None:
        """A pass that stands twice, if there is one."""
        if np.count_nonzero(self._rows >= 0) == len(self):
            return None
        return Counter(self.passes).most_common(1)[0][0]


def whole(numbers: Sequence[int] | Ints, times: int = 4) -> Whole:
    """An array that stays exact when up to `times` of such numbers are added up."""
    if isinstance(numbers, np.ndarray) and numbers.dtype == np.int64:
        fits = not len(numbers) or int(np.abs(numbers).max()) * times < 2**62
    else:
        fits = max(map(abs, numbers), default=0) * times < 2**62
    return np.array(numbers, np.int64) if fits else np.array(numbers, object)
