"""The visits of micro-batches to one device, other devices being relaxed to fixed delays."""

from __future__ import annotations

from typing import NamedTuple


class Later(NamedTuple):
    """A pass that may be put off: how long it runs, and the memory it gives back at its end."""

    ticks: int
    gives: int


class Visit(NamedTuple):
    """A forward or a gradient of each micro-batch of a trip, in ticks; memory in any unit.

    It starts at `earliest` or later and runs for `ticks`; it takes memory when it starts and gives memory back when it
    ends. From its end at least `away` pass until the micro-batch's next visit starts, and at least `after` until all is
    over. What it puts off runs any time after it.
    """

    earliest: int
    ticks: int
    away: int
    after: int
    takes: int
    gives: int
    later: Later | None

    def latest(self, until: int) -> int:
        """The latest start with which all can be over by then."""
        return until - self.after - self.ticks


class Trip(NamedTuple):
    """All visits of one micro-batch to the device, in order; so many micro-batches make it."""

    microbatches: int
    visits: tuple[Visit, ...]


class OneDevice(NamedTuple):
    """A device that micro-batches visit; `capacity` is None where memory has no limit.

    `all_by_the_end` says whether passes put off must be over too when all is; if not they may come later.
    """

    capacity: int | None
    trips: tuple[Trip, ...]
    all_by_the_end: bool

    def latest(self, later: Later, until: int) -> int | None:
        """The latest start of a pass put off; None if there is none."""
        return until - later.ticks if self.all_by_the_end else None
