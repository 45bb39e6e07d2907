"""Gives each micro-batch its own items of a data iterator, whatever order the micro-batches run in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class NumberedBatches:
    """An iterator whose `next` gives the items of the micro-batch that was begun last.

    A forward may read several items; every one reads as many as the first. Items stay until their micro-batch is
    forgotten, so that a forward that runs again reads the same ones.
    """

    def __init__(self, source: Iterator[Any]) -> None:
        self._source, self._items, self._taken = source, dict[int, Any](), 0
        self._each: int | None = None
        self._microbatch, self._place = 0, 0

    def begin(self, microbatch: int) -> None:
        """The next items are those of this micro-batch."""
        self._microbatch, self._place = microbatch, 0

    def __iter__(self) -> NumberedBatches:
        return self

    def __next__(self) -> Any:
        # How many a forward reads is known once one has read; before, only where micro-batch 0 begins needs no number.
        most = self._each if self._each is not None else 1 if self._microbatch else None
        if self._place == most:
            raise ValueError(
                f"pipesched: the forward of micro-batch {self._microbatch} reads more than {most} items of its data "
                f"iterator; allowed: the same number for all"
            )
        at = self._microbatch * (self._each or 1) + self._place
        while self._taken <= at:
            self._items[self._taken] = next(self._source)
            self._taken += 1
        self._place += 1
        return self._items[at]

    def end(self) -> None:
        """The forward has read what it reads."""
        if self._each is None and self._place:
            self._each = self._place
        if self._place not in (0, self._each):
            raise ValueError(
                f"pipesched: found {self._place} items read by the forward of micro-batch {self._microbatch}; "
                f"allowed: {self._each}, as the first one read"
            )

    def forget(self, microbatch: int) -> None:
        """Its forward does not run again."""
        each = self._each or 0
        for at in range(microbatch * each, (microbatch + 1) * each):
            self._items.pop(at, None)
