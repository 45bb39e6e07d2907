"""Subsolver: decision-diagram bounds over activation modes (keep, offload, recompute), of one or two devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxation import RelaxedProblem
from pipesched.problem.relaxed.relaxations import SAVED_ACTIVATIONS, relaxed
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import of_original
from solver.diagram.activation_mode_bounds import bounds_of_activation_modes, is_covered
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.kernels import LABEL_KERNELS, Kernels
from solver.engine.search import Search


@dataclass(frozen=True)
class ActivationModes(DiagramBounds):
    """Decision-diagram bounds for problems in which activations may be offloaded or recomputed.

    They are of the problem relaxed to plain passes with these modes.
    """

    name: str = "diagrams of held activations"

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and _passes_of(search.problem) is not None

    def kernels(self, _: Search) -> Kernels:
        return LABEL_KERNELS

    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        poorer = _passes_of(search.problem)
        assert poorer is not None
        added_back = float(poorer.added_back)

        def open_ticks() -> tuple[float, float]:
            proved, known = search.open_ticks()
            return proved - added_back, known - added_back

        for found in bounds_of_activation_modes(poorer.problem, stop, open_ticks, work):
            yield of_original(poorer, found)


def _passes_of(problem: Problem) -> RelaxedProblem | None:
    """Return the problem relaxed to plain passes with their activation modes; None if the bounds do not support it."""
    if problem.network.scale:
        return None
    poorer = relaxed(problem, {SAVED_ACTIVATIONS})
    return poorer if is_covered(poorer.problem) else None
