"""Part: lower bounds by crossings of all chains, where several share the devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.problem.problem import Objective
from pipesched.results.certificate import Certificate
from solver.diagram.all_chains.bound import WORK, bounds_of_chains
from solver.diagram.steps import walked_chains
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.kernels import CHAIN_KERNELS, Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice

# Labels that a second is enough for.
_LABELS_A_SECOND = 500_000


@dataclass(frozen=True)
class AllChains(DiagramBounds):
    """Values below the incumbent are tried. With more chains there are too many states, as of unequal micro-batches."""

    name: str = "diagrams of all chains"
    most_chains: int = 4

    def serves(self, search: Search) -> bool:
        problem = search.problem
        if not super().serves(search) or problem.objective is Objective.PERIOD:
            return False
        return 2 <= len([*walked_chains(problem)]) <= self.most_chains

    def kernels(self, _: Search) -> Kernels:
        return CHAIN_KERNELS

    def bounds(self, search: Search, slice_: Slice, /) -> Iterator[Certificate]:
        proved, known = search.open_ticks()
        work = min(WORK, slice_.counted(_LABELS_A_SECOND) or WORK)
        return bounds_of_chains(search.problem, search.stop, proved, known, work=work)
