"""Part: lower bounds by crossings: the first stages of a chain with the micro-batches that memory admits there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.results.certificate import Certificate
from solver.diagram.first_stages.bound import crossing_bounds
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.kernels import CROSSING_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice


@dataclass(frozen=True)
class CrossingBounds(DiagramBounds):
    """More and more stages of a chain. Their time does not grow with the number of micro-batches."""

    name: str = "crossings"

    def serves(self, search: Search) -> bool:
        return super().serves(search) and not search.problem.overlaps

    def kernels(self, _: Search) -> Kernels:
        return CROSSING_KERNELS

    def bounds(self, search: Search, _: Slice, /) -> Iterator[Certificate]:
        return crossing_bounds(search.problem, search.stop)
