"""Inference between cells of a family, which differ only in the capacities of their devices.

A schedule that fits in less memory fits in more, and a bound on all schedules with more memory is valid with less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pipesched.layers.cluster import Capacities
from pipesched.problem.formatting import plain
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer
from pipesched.results.evidence import MoreMemory, OfRelaxed
from pipesched.results.evidence_document import evidence_document, evidence_from
from pipesched.results.solution import Status
from pipesched.schedule.timeline import Timeline
from pipesched.sweeps.cells import Cell
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.plan_evidence import is_of_plans, proved_with
from pipesched.validation.validator import validate
from solver.sweeps.outcomes import rebased
from solver.sweeps.plan_start import plan_start

CARRIED = "bound with more memory"


class Neighbours:
    """All cells of a sweep by family; the cells of a family differ only in memory capacities.

    `known` has the outcome so far of each cell, by the cell's key. Refused cells are left out, and no method takes one.
    """

    def __init__(self, cells: Iterable[Cell], known: dict[str, Outcome]) -> None:
        self.known = known
        self._families: dict[str, dict[str, Cell]] = {}
        for cell in cells:
            if not cell.refused:
                self._families.setdefault(cell.family, {}).setdefault(cell.key, cell)

    def start(self, cell: Cell) -> Outcome | None:
        """Return the outcome of best value, with a schedule, of the cell or one of its family with no more memory.

        None if none is known.
        """
        found = [self.known.get(other.key) for other in self._family(cell) if holds(other.capacities, cell.capacities)]
        best = [one for one in found if one is not None and one.value is not None and one.schedule is not None]
        return min(best, key=lambda one: one.value or Fraction(0), default=None)

    def floor(self, cell: Cell) -> Fraction | None:
        """Return the strongest lower bound known for the cell or one of its family with no less memory.

        It is in the file's unit. None if there is none.
        """
        found = [self.known.get(other.key) for other in self._family(cell) if holds(cell.capacities, other.capacities)]
        return max((one.lower_bound for one in found if one is not None and one.lower_bound is not None), default=None)

    def settled(self, cell: Cell) -> Iterator[tuple[Cell, Outcome]]:
        """Yield (improved cell, its new outcome): `cell` where others of its family improve it, then others.

        Others are those that have an outcome. `known` must have the outcome of `cell`; the caller puts each new one
        there before it asks for the next.
        """
        others = [other for other in self._family(cell) if other.key != cell.key and other.key in self.known]
        for source, target in [*((other, cell) for other in others), *((cell, other) for other in others)]:
            before = self.known[target.key]
            found = _learnt(target, before, source, self.known[source.key])
            if found is not before:
                yield target, found

    def _family(self, cell: Cell) -> Sequence[Cell]:
        return tuple(self._families[cell.family].values())


def holds(less: Capacities, more: Capacities) -> bool:
    """True if every device has at least as much memory in `more` as in `less`; None is unlimited."""
    return all(b is None or (a is not None and a <= b) for a, b in zip(less, more, strict=True))


def by_memory(cell: Cell) -> tuple[tuple[bool, Fraction], ...]:
    """Return a key that sorts the cells of a family by rising capacity, device by device, unlimited ones last."""
    return tuple((own is None, own or Fraction(0)) for own in cell.capacities)


def _learnt(cell: Cell, before: Outcome, other: Cell, theirs: Outcome) -> Outcome:
    """Return a cell's outcome improved by another cell's schedule or bound; the same object if neither is better."""
    found = before
    if before.status is Status.INFEASIBLE:
        return before
    if holds(other.capacities, cell.capacities):
        found = _with_schedule(cell, found, theirs)
    if holds(cell.capacities, other.capacities) and theirs.lower_bound is not None:
        found = found.with_bound(theirs.lower_bound, CARRIED, _claim(other, theirs), _evidence(other, theirs))
    return found


def _with_schedule(cell: Cell, before: Outcome, from_less: Outcome) -> Outcome:
    """Return the outcome with the schedule of a cell with less memory, if it is better and valid in this cell.

    Unchanged for the period, which a timeline of this cell's problem does not have.
    """
    if from_less.value is None or from_less.schedule is None or cell.problem.objective.repeats:
        return before
    if before.value is not None and before.value <= from_less.value:
        return before
    problem = cell.problem
    if not isinstance(problem, Problem):
        candidate = plan_start(problem, from_less)
        timeline = None if candidate is None else candidate.timeline
    else:
        timeline = _in_problem(problem, unpack(from_less.schedule).timeline)
    if timeline is None or validate(timeline):
        return before
    now = rebased(before, timeline, from_less.choice)
    return now if before.value is None or (now.value or before.value) < before.value else before


def _in_problem(problem: Problem, timeline: Timeline) -> Timeline | None:
    """Return a timeline's starts in another problem; None unless ticks there are a multiple of the timeline's."""
    parts = problem.tick / timeline.problem.tick
    if parts.denominator != 1:
        return None
    return Timeline(finer(problem, parts.numerator), timeline.schedule, timeline.starts)


def _evidence(cell: Cell, known: Outcome) -> Mapping[str, Any] | None:
    """Return a cell's evidence in the form of evidence for a cell with less memory; None if it has none."""
    if known.evidence is None or known.kind == CARRIED:
        return known.evidence
    if is_of_plans(known.evidence):
        return proved_with(known.evidence, cell.capacities)
    return evidence_document(OfRelaxed(MoreMemory(cell.capacities), known.kind, evidence_from(known.evidence)))


def _claim(cell: Cell, known: Outcome) -> str:
    """Return the text that argues why a cell's bound also holds with less memory."""
    rooms = {None if one is None else plain(float(one)) for one in cell.capacities}
    most = "any amount" if rooms == {None} else " or ".join(sorted(room or "any amount" for room in rooms))
    if known.kind == CARRIED:
        return known.claim
    return f"A schedule with less memory is one with more, and with a capacity of {most}: {known.claim}"
