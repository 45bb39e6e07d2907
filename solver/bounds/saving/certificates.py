"""All analytic lower bounds of a problem, including those that account for offloading and recomputation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.relaxation import RelaxedProblem
from pipesched.problem.relaxed.relaxations import SAVED_ACTIVATIONS, relaxed
from pipesched.results.certificate import Certificate
from solver.bounds.analytic import catalogue
from solver.bounds.analytic.catalogue import Run, of_original
from solver.bounds.analytic.stream_weights import NAME, stream_weights
from solver.bounds.saving.memory_and_copies import KIND, memory_and_copies


def certificates(problem: Problem, objective: Objective, run: Run | None = None) -> list[Certificate]:
    """Return every analytic certificate valid for the problem, in descending order of value.

    Where activations may be offloaded or recomputed, two bounds read these modes: one counts copies and recomputations,
    the other that an activation is in memory while its weight tasks wait. The bounds of the catalogue let each
    activation occupy as little memory as any mode allows. `run(name, certify)` calls `certify` of each bound, and may
    give up on it; with None all are computed.
    """
    found = list[Certificate]()
    if problem.network.has_activation_modes:
        saving, known = cache(partial(relaxed, problem, {SAVED_ACTIVATIONS})), objective.of_passes
        for name, bound in ((KIND, memory_and_copies), (NAME, _stream_weights)):
            certify = partial(_certified, bound, saving, known)
            found += certify() if run is None else run(name, certify)
    found += catalogue.certificates(problem, objective, run)
    return sorted(found, key=lambda certificate: -certificate.value_ticks)


def _certified(
    bound: Callable[[Problem, Objective], list[Certificate]], saving: Callable[[], RelaxedProblem], objective: Objective
) -> list[Certificate]:
    """Return the certificates of a bound, converted to the original problem, from the relaxed one that `saving` makes.

    That problem has been relaxed in all but its offloading and recomputation.
    """
    poorer = saving()
    return [of_original(poorer, one) for one in bound(poorer.problem, objective)]


def _stream_weights(problem: Problem, objective: Objective) -> list[Certificate]:
    return stream_weights(problem.keeping_activations(), objective)
