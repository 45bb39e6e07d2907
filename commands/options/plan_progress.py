"""A line for each moment of a search for plans."""

from __future__ import annotations

from pipesched.problem.formatting import plain
from solver.planning.progress import PlanProgress


def plan_line(moment: PlanProgress, unit: str) -> str:
    """Value, bound, placements closed (solved or no better), and what is under way."""

    def said(number: object) -> str:
        return f"{plain(float(number))} {unit}".rstrip()  # type: ignore[arg-type]

    best = "no plan yet" if moment.value is None else f"best {said(moment.value)}"
    settled = f"{moment.settled} of {moment.choices} placements closed"
    return f"{moment.seconds:6.1f} s  {best}, bound {said(moment.lower_bound)}, {settled}  ({moment.phase})"
