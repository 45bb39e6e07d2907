"""The search of a point: the best of all placements, each searched only for what is better than the others.

Published schedules and bounds of every placement come first. The placement with the least bound is searched in full;
any other only for a better schedule, and not at all where its bound shows that it has none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from benchmarks.atlas.row import IMPROVED
from benchmarks.cases.engine_subsolvers import without
from heuristics.catalogue import HEURISTICS
from pipesched.event_when import event_when
from pipesched.problem.problem import Problem
from pipesched.results.solution import Progress
from pipesched.sweeps import outcome as sweeps
from pipesched.sweeps.cells import Cell
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.store import Store
from solver.analysis.published_comparison import all_tried
from solver.engine.engine import ENGINE, WITHOUT_SEARCH
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.solve import solve, without_search
from solver.sweeps.neighbours import Neighbours
from solver.sweeps.outcomes import of_solution
from solver.sweeps.solve_cell import MetBound

_POLL = 0.05  # seconds between looks at the processor time
_BUSY = 20  # times the processor seconds, for slices of a search where work is not counted


@dataclass(frozen=True)
class Effort:
    """Limits of one search: CP-SAT's units of work, and processor seconds, which a busy machine does not shorten.

    Without units no work is counted: seconds are the only limit, and two runs differ. With names of subsolvers in
    `only` those search alone, and units do not count.
    """

    units: float | None
    seconds: float
    only: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        """True if work is counted."""
        return self.units is not None and not self.only

    @property
    def _searching(self) -> str:
        return f"{', '.join(self.only)} alone" if self.only else "work not counted"

    @property
    def name(self) -> str:
        """Who searches and for how long, where no work is counted; else empty."""
        return "" if self.counted else f"{self._searching}, {self.seconds:g} s"

    @property
    def limits(self) -> Limits:
        """With one worker: the same answer on every run that the processor seconds do not end."""
        if self.only:
            return Limits(seconds=_BUSY * self.seconds, workers=1)
        if self.units is None:  # slices are shares of the limit
            return Limits(seconds=self.seconds, workers=1)
        return Limits(seconds=100 * self.seconds, deterministic=self.units, workers=1)

    @property
    def engine(self) -> Engine:
        """The engine, or that of the subsolvers in `only`; where no work is counted, without refinement at the end."""
        if self.counted:
            return ENGINE
        others = {one.name for one in ENGINE.members} - {*self.only} if self.only else set[str]()
        return replace(without(ENGINE, *others), finish=Search.solution)


class Settling:
    """Points of one family, with what is known of their cells in a store of sweeps."""

    def __init__(self, cells: tuple[Cell, ...], store: Store, effort: Effort) -> None:
        self._store, self._effort = store, effort
        self.known: dict[str, Outcome] = store.known(cell.key for cell in cells)
        self._neighbours = Neighbours(cells, self.known)

    def settle(self, cells: Mapping[str, Cell], published: bool = True) -> None:
        """Search the cells of a point until one is shown to be the best, or each was searched within the limits.

        Published schedules are compared first, unless they are known from elsewhere (`published` False).
        """
        for cell in cells.values():
            if published and not (cell.key in self.known and self.known[cell.key].published):
                self._keep(cell, _published(cell, self._effort.limits))
            elif cell.key not in self.known:
                self._keep(cell, _bounds(cell, self._effort.limits))
        searched: set[str] = set()
        while (name := self._next(cells, searched)) is not None:
            searched.add(name)
            cell, best = cells[name], self.best(cells, without=name)
            better = self._solve(cell, best)
            if best is not None and better is not None and better < best:
                self._solve(cell, None)

    def best(self, cells: Mapping[str, Cell], without: str = "") -> Fraction | None:
        """The least value known of any placement, or of the others than one."""
        values = (self.known[cell.key].value for name, cell in cells.items() if name != without)
        return min((value for value in values if value is not None), default=None)

    def _next(self, cells: Mapping[str, Cell], searched: set[str]) -> str | None:
        """The placement with the least bound of those that may have a better schedule and were not searched."""
        best, remaining = self.best(cells), [name for name in cells if name not in searched]
        bounds = {name: self.known[cells[name].key].lower_bound or Fraction(0) for name in remaining}
        able = [name for name in remaining if best is None or bounds[name] < best]
        return min(able, key=bounds.__getitem__, default=None)

    def _solve(self, cell: Cell, best: Fraction | None) -> Fraction | None:
        """Search a cell, only for less than `best` if given; the value known then."""
        problem, limits = _problem(cell), self._effort.limits
        if best is not None:
            limits = replace(limits, target=ceil(best / problem.tick) - 1)
        known, until = self._neighbours.start(cell), time.process_time() + self._effort.seconds
        start = None if known is None or known.schedule is None else unpack(known.schedule).timeline
        with event_when(lambda: time.process_time() >= until, _POLL) as stop:
            met = MetBound(self._neighbours.floor(cell), 0.0, stop)

            def report(moment: Progress) -> None:
                met.see(moment.value)

            self._keep(
                cell, of_solution(solve(problem, limits, report, stop, start, self._effort.engine), _stated(limits))
            )
        return self.known[cell.key].value

    def _keep(self, cell: Cell, outcome: Outcome) -> None:
        self.known[cell.key] = self._store.keep(cell.key, outcome)
        for other, found in self._neighbours.settled(cell):
            self.known[other.key] = self._store.keep(other.key, found, solved=False)


def _published(cell: Cell, limits: Limits) -> Outcome:
    """Bounds and all published schedules of a cell, without search."""
    names = [name for name in HEURISTICS.names() if name not in IMPROVED]
    return of_solution(all_tried(without_search(_problem(cell), limits), names, limits), _stated(limits))


def _bounds(cell: Cell, limits: Limits) -> Outcome:
    """Analytic bounds of a cell alone."""
    return of_solution(solve(_problem(cell), limits, engine=replace(WITHOUT_SEARCH, construction=())), _stated(limits))


def _stated(limits: Limits) -> sweeps.Effort:
    return sweeps.Effort(limits.seconds, limits.workers, limits.seed, float(limits.gap))


def _problem(cell: Cell) -> Problem:
    assert isinstance(cell.problem, Problem)
    return cell.problem
