"""The catalogue of analytic lower bounds, and the strongest certificate of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem
from pipesched.problem.relaxed.relaxations import relaxed, with_partners
from pipesched.registry import Registry
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import MemoryOfPartners, OfRelaxed, Refutation


@dataclass(frozen=True)
class Bound:
    """A lower bound on the makespan or span of a problem; `certify` gives one certificate for each device concerned.

    Bounds are computed in order of `rank` within one share of the time limit, and among certificates of equal value the
    one of the lowest rank is first. `several_streams`: the bound is also valid
    where passes consist of several tasks, which may alternate or overlap with tasks of other passes. `keeping`:
    features of the problem that the bound can use, and that are therefore not relaxed for it. `reads_memory`: the room
    of devices may change it, so that it is also computed with the memory of partners.
    """

    name: str
    certify: Callable[[Problem, Objective], list[Certificate]]
    rank: int = 9
    several_streams: bool = False
    keeping: frozenset[Relaxation] = frozenset()
    reads_memory: bool = False


BOUNDS: Registry[Bound] = Registry("solver.bounds.analytic", "bound")


Certify = Callable[[], list[Certificate]]
# Computes a bound of this name; it may give up on it.
Run = Callable[[str, Certify], list[Certificate]]
# The problem that a bound reads; None if there is none, and the bound does not apply.
Relax = Callable[[frozenset[Relaxation]], RelaxedProblem | None]


def certificates(problem: Problem, objective: Objective, run: Run | None = None) -> list[Certificate]:
    """Return every certificate of every bound that is valid for the problem, strongest first.

    `run(name, certify)` computes each bound, with the relaxation that it needs, and may give up on it; None: all are
    computed.
    """
    alone, shared = cache(partial(relaxed, problem)), cache(partial(with_partners, problem))
    found: list[Certificate] = []
    for bound in sorted(BOUNDS, key=lambda bound: bound.rank):
        for relax in (alone, shared) if bound.reads_memory else (alone,):
            certify = partial(_certified, bound, relax, objective.of_passes)
            found += certify() if run is None else run(bound.name, certify)
    return sorted(found, key=lambda certificate: -certificate.value_ticks)


def _certified(bound: Bound, relax: Relax, objective: Objective) -> list[Certificate]:
    """Return the certificates of a bound about a relaxed problem; none if there is no such problem or it does not
    apply."""
    poorer = relax(bound.keeping)
    if poorer is None or not (bound.several_streams or poorer.problem.view is not None):
        return []
    return [of_original(poorer, one) for one in bound.certify(poorer.problem, objective)]


def of_original(poorer: RelaxedProblem, found: Certificate) -> Certificate:
    """Return a certificate of a relaxed problem as one of the original problem."""
    text, evidence = " ".join((found.text, *poorer.notes)), found.evidence
    if poorer.sharing and evidence is not None and not isinstance(evidence, Refutation):
        evidence = OfRelaxed(MemoryOfPartners(poorer.sharing), found.kind, evidence)
    return replace(found, value_ticks=found.value_ticks + poorer.added_back, text=text, evidence=evidence)
