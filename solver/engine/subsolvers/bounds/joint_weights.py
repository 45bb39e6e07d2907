"""Subsolver: decision-diagram bounds for stages whose memory is freed only after several weight tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.problem.relaxed.relaxation import RelaxedProblem
from pipesched.problem.relaxed.relaxations import relaxed
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import of_original
from solver.diagram.completion import ENDLESS
from solver.diagram.joint_weights import bounds_of_joint_weights, has_joint_weights
from solver.diagram.modelled_steps import longest_of_all
from solver.engine.diagram_bounds import DiagramBounds
from solver.engine.kernels import DIAGRAM_KERNELS, LONG_DIAGRAM_KERNELS, Kernels
from solver.engine.search import Search
from solver.tasks.as_stages import StreamDecomposition, stream_decomposition


@dataclass(frozen=True)
class JointWeights(DiagramBounds):
    """Decision-diagram bounds where a stage has several weight tasks on one device, as in mixture-of-experts layers.

    The tasks are joint: a stage's memory is freed only when all of them have ended. In the relaxed problem each task is
    a stage of its own.
    """

    name: str = "diagrams of joint weight tasks"

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds and _decomposition(search.problem) is not None

    def kernels(self, search: Search) -> Kernels:
        found = _decomposition(search.problem)
        long = found is not None and longest_of_all(found[1].plain) >= ENDLESS
        return LONG_DIAGRAM_KERNELS if long else DIAGRAM_KERNELS

    def bounds(self, search: Search, stop: Event, work: int, /) -> Iterator[Certificate]:
        found = _decomposition(search.problem)
        assert found is not None
        poorer, own = found
        added_back = float(poorer.added_back)

        def open_ticks() -> tuple[float, float]:
            proved, known = search.open_ticks()
            return proved - added_back, known - added_back

        for one in bounds_of_joint_weights(own.plain, _stages(own), stop, open_ticks, work):
            yield of_original(poorer, own.claim(one))


def _decomposition(problem: Problem) -> tuple[RelaxedProblem, StreamDecomposition] | None:
    """Return the relaxed problem, and that problem with tasks as stages.

    None if it has no joint weight tasks, is plain already, or has unequal micro-batches.
    """
    if problem.view is not None or problem.network.scale:
        return None
    poorer = relaxed(problem)
    own = None if poorer.problem.view is not None else stream_decomposition(poorer.problem)
    return None if own is None or not has_joint_weights(own.plain, _stages(own)) else (poorer, own)


def _stages(own: StreamDecomposition) -> list[StageId]:
    return [row[0] for row in own.rows]
