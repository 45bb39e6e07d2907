"""Subsolver: decision-diagram bounds of all chains on growing sets of devices, pruned by diagrams of single devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from pipesched.results.certificate import Certificate
from solver.diagram.by_device import bounds_by_device
from solver.diagram.modelled_stages import walked_chains
from solver.diagram.params import DIAGRAMS
from solver.diagram.threshold_search import ThresholdSearch
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.search import Search


@dataclass(frozen=True)
class ByDevice(DiagramBounds):
    """Bounds up to the incumbent's value, for problems with at most as many chains as a diagram may have devices.

    With more chains, as of unequal micro-batches, there are too many states.
    """

    name: str = "diagrams guided by each device"

    def serves(self, search: Search) -> bool:
        problem = search.problem
        if not super().serves(search) or problem.objective.repeats:
            return False
        return len([*walked_chains(problem)]) <= DIAGRAMS.most_devices

    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        return bounds_by_device(ThresholdSearch(search.problem, stop, search.open_ticks, work=work))
