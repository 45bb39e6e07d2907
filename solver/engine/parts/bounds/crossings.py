"""Part: lower bounds by crossings: the first stages of a chain with the micro-batches that memory admits there."""

from __future__ import annotations

from dataclasses import dataclass

from solver.bounds.crossing.bound import crossing_bounds
from solver.engine.claims import claimed
from solver.engine.kernels import CROSSING_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class CrossingBounds:
    """More and more stages of a chain. Their time does not grow with the number of micro-batches."""

    name: str = "crossings"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and search.plain_passes and not search.problem.overlaps

    def kernels(self, _: Search) -> Kernels:
        return CROSSING_KERNELS

    def work(self, search: Search) -> Work:
        return claimed(search, lambda _: crossing_bounds(search.problem, search.stop))
