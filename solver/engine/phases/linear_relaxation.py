"""Phase: lower bounds by the linear relaxation of single devices."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from solver.bounds.lp_bound import lp_bounds
from solver.engine.search import Search


@dataclass(frozen=True)
class LinearRelaxation:
    """It needs long only where it gains little, so that it gets a share of the time."""

    share: float = 0.15
    name: str = "linear relaxation"

    def applies(self, search: Search) -> bool:
        return search.engine.raise_bounds and not search.takes_long_to_state

    def run(self, search: Search) -> None:
        value = search.incumbent.value
        assert value is not None
        for certificate in lp_bounds(search.problem, ceil(value), search.clock.left(self.share), search.stop):
            search.incumbent.argue(certificate)
            if search.done():
                return
