"""Phase: lower bounds by the linear relaxation of single devices."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from formulations.window.operation_units import modes_matter
from solver.backends.interruptible import run_within
from solver.bounds.lp_bound import lp_bounds
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search


@dataclass(frozen=True)
class LinearRelaxation:
    """It needs long only where it gains little, so that it gets a share of the time.

    None where blocks overlap, or full backwards gain: parts of these cost nothing there, so that it proves
    .61 to .91 of what counting modes does.
    """

    share: float = 0.15
    name: str = "linear relaxation"

    def applies(self, search: Search) -> bool:
        if search.problem.overlaps or modes_matter(search.problem):
            return False
        return search.engine.raise_bounds and not search.takes_long_to_state

    def run(self, search: Search) -> None:
        """Stating the program of a long problem takes many times the share, and looks at no clock."""
        with improving_meanwhile(search):
            run_within(search.clock.allowed(self.share), search.stop, lambda: self._argue(search))

    def _argue(self, search: Search) -> None:
        value = search.incumbent.value
        assert value is not None
        for certificate in lp_bounds(search.problem, ceil(value), search.clock.left(self.share), search.stop):
            search.incumbent.argue(certificate)
            if search.done():
                return
