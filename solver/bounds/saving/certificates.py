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
    """Return every certificate valid for the problem, strongest first; `run` is as for `catalogue.certificates`.

    Where activations may be offloaded or recomputed, two bounds use that; the bounds of the catalogue let each
    activation occupy as little memory as any mode allows.
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
    """Return the certificates of a bound about the relaxed problem that still has modes of activations."""
    poorer = saving()
    return [of_original(poorer, one) for one in bound(poorer.problem, objective)]


def _stream_weights(problem: Problem, objective: Objective) -> list[Certificate]:
    return stream_weights(problem.keeping_activations(), objective)
