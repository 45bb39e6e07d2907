"""Subsolver: lower bounds by decision diagrams over activation modes, on one device and on pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.without_lookups import without_lookups
from pipesched.problem.relaxed.without_parameters import without_parameters
from pipesched.problem.relaxed.without_stage_arcs import without_stage_arcs
from pipesched.results.certificate import Certificate
from solver.bounds.saving.certificates import with_parameters
from solver.diagram.activation_modes.threshold_bounds import bounds_of_activation_modes, is_covered
from solver.diagram.certificate import KIND
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.search import Search


@dataclass(frozen=True)
class ActivationModes(DiagramBounds):
    """Diagrams over activation modes for problems in which activations may be offloaded or recomputed."""

    name: str = "diagrams of held activations"

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and _passes_of(search.problem) is not None

    def kernels(self, _: Search) -> None:
        return None

    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        whole, problem = search.problem, _passes_of(search.problem)
        assert problem is not None
        besides = float(with_parameters(whole, Certificate(KIND, 0, "", 0, None)).value_ticks)

        def open_ticks() -> tuple[float, float]:
            proved, known = search.open_ticks()
            return proved - besides, known - besides

        for found in bounds_of_activation_modes(problem, stop, open_ticks, work):
            yield with_parameters(whole, found)


def _passes_of(problem: Problem) -> Problem | None:
    """Without what runs for parameters and without lookups and arcs between chains; None where that is not covered."""
    if problem.microbatch_scale:
        return None
    rest = without_stage_arcs(without_lookups(without_parameters(problem)))
    return rest if is_covered(rest) else None
