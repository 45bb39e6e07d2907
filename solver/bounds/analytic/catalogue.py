"""The catalogue of analytic lower bounds, and the strongest certificate of a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pipesched.problem.problem import Objective, Problem
from pipesched.problem.relaxed.relaxation import Relaxation, RelaxedProblem
from pipesched.problem.relaxed.relaxations import relaxed
from pipesched.registry import Registry
from pipesched.results.certificate import Certificate


@dataclass(frozen=True)
class Bound:
    """A lower bound on the makespan or span of a problem: one certificate for each device that it concerns.

    Of certificates of equal value the one of the lowest `rank` is first. `several_streams`: the bound is valid too
    where passes are several tasks, which other tasks may run between or at the same time; `keeping` are the relaxations
    that it does without: it reads what all others leave of a problem.
    """

    name: str
    certify: Callable[[Problem, Objective], list[Certificate]]
    rank: int = 9
    several_streams: bool = False
    keeping: frozenset[Relaxation] = frozenset()


BOUNDS: Registry[Bound] = Registry("solver.bounds.analytic", "bound")


Certify = Callable[[], list[Certificate]]
# Computes a bound of this name; it may give up on it.
Run = Callable[[str, Certify], list[Certificate]]


def certificates(problem: Problem, objective: Objective, run: Run | None = None) -> list[Certificate]:
    """Every certificate of every bound that holds for the problem, strongest first.

    `run` computes each bound but the load, whose certificates are always there.
    """
    objective = objective.of_passes
    left = {keeping: relaxed(problem, keeping) for keeping in {bound.keeping for bound in BOUNDS}}
    found: list[Certificate] = []
    for bound in sorted(BOUNDS, key=lambda bound: bound.rank):
        poorer = left[bound.keeping]
        if not bound.several_streams and poorer.problem.view is None:
            continue
        certify = partial(bound.certify, poorer.problem, objective)
        own = certify() if run is None or bound.name == "load" else run(bound.name, certify)
        found += (of_original(poorer, one) for one in own)
    return sorted(found, key=lambda certificate: -certificate.value_ticks)


def of_original(poorer: RelaxedProblem, found: Certificate) -> Certificate:
    """A certificate of a relaxed problem as one of the original problem."""
    text = " ".join((found.text, *poorer.notes))
    return replace(found, value_ticks=found.value_ticks + poorer.added_back, text=text)
