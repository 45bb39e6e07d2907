"""Progress lines of the plan searches of one command."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

from commands.shared.console import redraws
from pipesched.problem.formatting import with_unit
from solver.planning.progress import PlanProgress


class PlanLines:
    """Printer of progress lines for several searches of one command.

    The seconds on them count from when it is made. `unit` is the name of the unit of times; `say` prints a line.
    """

    def __init__(self, unit: str, say: Callable[[str], None]) -> None:
        self._unit, self._say, self._began = unit, say, time.monotonic()
        self._last: tuple[Fraction | None, Fraction, int] | None = None

    def __call__(self, moment: PlanProgress) -> None:
        """Print the progress line of a moment: best value, bound, placements done, and the current phase.

        Where lines are not replaced in place, nothing is printed unless one of the three changed.
        """
        seen = moment.value, moment.lower_bound, moment.settled
        if not redraws() and seen in (self._last, (None, 0, 0)):
            return
        self._last = seen
        known = ["no plan yet" if moment.value is None else f"best {with_unit(moment.value, self._unit)}"]
        if moment.lower_bound:
            known.append(f"bound {with_unit(moment.lower_bound, self._unit)}")
        if moment.choices > 1:
            known.append(f"{moment.settled} of {moment.choices} placements done")
        self._say(f"{time.monotonic() - self._began:6.1f} s  {', '.join(known)}  ({moment.phase})")
