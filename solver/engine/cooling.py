"""Cooling of simulated annealing: temperatures that fall linearly over a slice, or over a number of tries."""

from __future__ import annotations

from collections.abc import Iterator

from solver.engine.search import Search
from solver.engine.slices import Slice


def falling_temperatures(search: Search, slice_: Slice, tries: int, first: float) -> Iterator[float]:
    """Yield a temperature for each try of simulated annealing, falling linearly from `first` to 0 over the slice.

    Where work is counted, it falls over `tries` tries instead. The iterator ends early when the search is done.
    """
    whole, tried = slice_.left(), 0
    while not search.done():
        gone = tried / tries if search.clock.counts_work else 1 - slice_.left() / whole if whole else 1.0
        if gone >= 1:
            return
        tried += 1
        yield first * (1 - gone)
