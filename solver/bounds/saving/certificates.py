"""All analytic lower bounds of a problem, those included that know of offload and recomputation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipesched.problem.least_held import holding_least
from pipesched.problem.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic import catalogue
from solver.bounds.analytic.catalogue import Certify
from solver.bounds.saving.memory_and_copies import KIND, memory_and_copies

_RELAXED = "So much it takes even if copies and recomputations take no time."


def certificates(
    problem: Problem, objective: Objective, run: Callable[[str, Certify], list[Certificate]] | None = None
) -> list[Certificate]:
    """Every certificate that holds for the problem, strongest first; `run` is as for `catalogue.certificates`.

    Where activations may be offloaded or recomputed, the bounds of the catalogue are those of the problem that holds
    each of them as little as any way allows (`holding_least`); besides, those that hold for any way.
    """
    problem = without_scale(problem)
    if not problem.network.options:
        return catalogue.certificates(problem, objective, run)

    def own() -> list[Certificate]:
        return memory_and_copies(problem, objective)

    found = own() if run is None else run(KIND, own)
    found += catalogue.of_any_way(problem, objective, run)
    for one in catalogue.certificates(holding_least(problem), objective, run):
        found.append(replace(one, text=f"{one.text} {_RELAXED}"))
    return sorted(found, key=lambda certificate: -certificate.value)
