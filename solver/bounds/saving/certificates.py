"""All analytic lower bounds of a problem, including those that account for offloading and recomputation."""

from __future__ import annotations

from functools import partial

from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.relaxations import SAVED_ACTIVATIONS, relaxed
from pipesched.results.certificate import Certificate
from solver.bounds.analytic import catalogue
from solver.bounds.analytic.catalogue import Certify, Run, of_original
from solver.bounds.analytic.stream_weights import NAME, stream_weights
from solver.bounds.saving.memory_and_copies import KIND, memory_and_copies


def certificates(problem: Problem, objective: Objective, run: Run | None = None) -> list[Certificate]:
    """Return every certificate valid for the problem, strongest first; `run` is as for `catalogue.certificates`.

    Where activations may be offloaded or recomputed, two bounds use that; the bounds of the catalogue let each
    activation occupy as little memory as any mode allows.
    """
    found = list[Certificate]()
    saving = relaxed(problem, {SAVED_ACTIVATIONS})
    if saving.problem.network.has_activation_modes:
        known = objective.of_passes
        own: dict[str, Certify] = {
            KIND: partial(memory_and_copies, saving.problem, known),
            NAME: partial(stream_weights, saving.problem.keeping_activations(), known),
        }
        for name, certify in own.items():
            found += (of_original(saving, one) for one in (certify() if run is None else run(name, certify)))
    found += catalogue.certificates(problem, objective, run)
    return sorted(found, key=lambda certificate: -certificate.value_ticks)
