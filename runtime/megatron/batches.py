"""A data iterator that gives each micro-batch its own items, whatever order the micro-batches run in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class NumberedBatches:
    """An iterator over data in which each micro-batch has items of its own.

    `next` returns the next item of the micro-batch that was selected last by `begin`. Every forward reads as many items
    as the first one that reads any, or none; `next` raises `ValueError` if it reads more. If that first one is not of
    micro-batch 0, it may read one item only. Items are kept until their micro-batch is forgotten, so that a recomputed
    forward reads the same ones.
    """

    def __init__(self, source: Iterator[Any]) -> None:
        self._source, self._items, self._taken = source, dict[int, Any](), 0
        self._each: int | None = None
        self._microbatch, self._place = 0, 0

    def begin(self, microbatch: int) -> None:
        """Select the micro-batch whose items are read next, from its first on."""
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
        """Note that the forward has read its items; `ValueError` if not none or as many as the first that read any."""
        if self._each is None and self._place:
            self._each = self._place
        if self._place not in (0, self._each):
            raise ValueError(
                f"pipesched: found {self._place} items read by the forward of micro-batch {self._microbatch}; "
                f"allowed: {self._each}, as the first one read"
            )

    def forget(self, microbatch: int) -> None:
        """Drop the items of a micro-batch whose forward will not run again."""
        each = self._each or 0
        for at in range(microbatch * each, (microbatch + 1) * each):
            self._items.pop(at, None)
