"""Cooling of simulated annealing: temperatures that fall evenly over a slice, or over so many tries."""

from __future__ import annotations

from collections.abc import Iterator

from solver.engine.search import Search
from solver.engine.slices import Slice


def falling_temperatures(search: Search, slice_: Slice, tries: int, first: float) -> Iterator[float]:
    """One for each try, from `first` down to 0: over the slice, or over `tries` of counted work."""
    whole, tried = slice_.left(), 0
    while not search.done():
        gone = tried / tries if search.clock.counts_work else 1 - slice_.left() / whole if whole else 1.0
        if gone >= 1:
            return
        tried += 1
        yield first * (1 - gone)
