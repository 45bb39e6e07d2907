"""A line for each moment of the searches for plans of one command."""

from __future__ import annotations

import time

from pipesched.problem.formatting import with_unit
from solver.planning.progress import PlanProgress


class PlanLines:
    """The seconds are the command's own: it may search several times, each search counts its own from 0."""

    def __init__(self, unit: str) -> None:
        self._unit, self._began = unit, time.monotonic()

    def __call__(self, moment: PlanProgress) -> str:
        """Value, bound, placements done (solved, or shown to be no better), and what is under way."""
        best = "no plan yet" if moment.value is None else f"best {with_unit(moment.value, self._unit)}"
        bound = with_unit(moment.lower_bound, self._unit)
        done = f"{moment.settled} of {moment.choices} placements done"
        return f"{time.monotonic() - self._began:6.1f} s  {best}, bound {bound}, {done}  ({moment.phase})"
