"""Common base of the subsolvers that prove bounds by decision diagrams."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from threading import Event

from pipesched.results.certificate import Certificate
from solver.engine.claims import claimed
from solver.engine.kernels import DIAGRAM_KERNELS, LONG_DIAGRAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Work


@dataclass(frozen=True)
class DiagramBounds:
    """Base of subsolvers that prove bounds by decision diagrams, for problems whose passes are single tasks."""

    name: str
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and search.problem.view is not None

    def kernels(self, search: Search) -> Kernels | None:
        return LONG_DIAGRAM_KERNELS if search.long_times else DIAGRAM_KERNELS

    @abstractmethod
    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        """Yield certificates, each stronger than those before, until `stop` is set or `work` labels were expanded."""

    def work(self, search: Search) -> Work:
        return claimed(search, partial(self.bounds, search))
