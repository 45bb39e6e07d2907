"""Registry of analytic lower bounds, and the certificates of all for a problem.

Each is from the relaxation that it needs.
"""

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
    """An analytic bound in the registry.

    `certify(problem, objective)` returns its certificates, mostly one for each device, in any order; it gets a relaxed
    problem, and values are in that one's ticks. Bounds are computed in order of `rank` within one share of the time
    limit, and among certificates of equal value the one of the lowest rank is first. `several_streams`: the bound is
    also valid where passes consist of several tasks, which may alternate or overlap with tasks of other passes; else it
    gets plain pipelines alone. `keeping`: relaxations that are not applied to the problem, since the bound can read
    what they would drop. `reads_memory`: the memory of devices may change its value, so that it is computed a second
    time where each device also has the memory of the partners to which its activations are offloaded.
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
    """Return every certificate of every bound that is valid for the problem, in descending order of value.

    Each bound reads a relaxed problem, but the values are of the problem itself. `run(name, certify)` calls
    `certify()`, which relaxes the problem and computes the bound of this name, and may give up on it and return
    nothing; without `run` all bounds are computed.
    """
    alone, shared = cache(partial(relaxed, problem)), cache(partial(with_partners, problem))
    found: list[Certificate] = []
    for bound in sorted(BOUNDS, key=lambda bound: bound.rank):
        for relax in (alone, shared) if bound.reads_memory else (alone,):
            certify = partial(_certified, bound, relax, objective.of_passes)
            found += certify() if run is None else run(bound.name, certify)
    return sorted(found, key=lambda certificate: -certificate.value_ticks)


def _certified(bound: Bound, relax: Relax, objective: Objective) -> list[Certificate]:
    """Return a bound's certificates, converted to the original problem, from the problem that `relax` makes for it.

    None are returned if there is no such problem, or if it has passes of several tasks and the bound cannot read them.
    """
    poorer = relax(bound.keeping)
    if poorer is None or not (bound.several_streams or poorer.problem.view is not None):
        return []
    return [of_original(poorer, one) for one in bound.certify(poorer.problem, objective)]


def of_original(poorer: RelaxedProblem, found: Certificate) -> Certificate:
    """Convert a certificate of a relaxed problem to one of the original problem.

    Its value rises by the ticks that the relaxations leave out, and its text gets their notes. Where devices have their
    partners' memory in the relaxed problem, the evidence names that relaxation.
    """
    text, evidence = " ".join((found.text, *poorer.notes)), found.evidence
    if poorer.sharing and evidence is not None and not isinstance(evidence, Refutation):
        evidence = OfRelaxed(MemoryOfPartners(poorer.sharing), found.kind, evidence)
    return replace(found, value_ticks=found.value_ticks + poorer.added_back, text=text, evidence=evidence)
