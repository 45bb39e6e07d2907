"""Ends the search of a cell once it meets a bound that is known from another cell."""

from __future__ import annotations

from fractions import Fraction
from threading import Event

from pipesched.results.gap import gap


class MetBound:
    """`stop` ends the search, whoever sets it; `interrupted` tells whether that was somebody else."""

    def __init__(self, floor: Fraction | None, allowed: float, stop: Event) -> None:
        self._floor, self._allowed = floor, allowed
        self.stop = stop
        self._met = False

    @property
    def interrupted(self) -> bool:
        return self.stop.is_set() and not self._met

    def see(self, value: Fraction | None) -> None:
        """The best value so far, in the file's unit; None where there is none."""
        if self._floor is None or value is None or self.stop.is_set():
            return
        if gap(value, self._floor) <= self._allowed:
            self._met = True
            self.stop.set()
