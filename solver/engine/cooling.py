"""Cooling of simulated annealing: temperatures that fall evenly over a share of the time, or over so many tries."""

from __future__ import annotations

from collections.abc import Iterator

from solver.engine.search import Search


def falling_temperatures(search: Search, share: float, tries: int, first: float) -> Iterator[float]:
    """One for each try, from `first` down to 0: over a share of the time limit, or over `tries` of counted work."""
    clock = search.clock
    begin, whole, tried = clock.seconds, clock.left(share), 0
    while not search.done():
        gone = tried / tries if clock.counts_work else (clock.seconds - begin) / whole
        if gone >= 1:
            return
        tried += 1
        yield first * (1 - gone)
