"""Phase: destructive bounds of job shops, where CP-SAT refutes more by asking than by minimising."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.microbatch_chains import is_job_shop
from solver.engine.bound_search import refute
from solver.engine.search import Search


@dataclass(frozen=True)
class JobShopBounds:
    """A share of the time; counted work has them later, with all other bounds."""

    share: float = 0.15
    name: str = "destructive bounds of a job shop"

    def applies(self, search: Search) -> bool:
        if search.incumbent.value is None or search.clock.counts_work:
            return False
        return search.engine.raise_bounds and search.engine.destructive and is_job_shop(search.problem)

    def run(self, search: Search) -> None:
        refute(search, search.clock.left(self.share))
