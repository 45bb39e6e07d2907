"""The catalogue of lower bounds, and the best of them for a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipesched.certificate import Certificate
from pipesched.problem import Objective, Problem
from pipesched.registry import Registry


@dataclass(frozen=True)
class Bound:
    """A way to bound the makespan or span of a problem from below: one certificate for each device it speaks of."""

    name: str
    certify: Callable[[Problem, Objective], list[Certificate]]


BOUNDS: Registry[Bound] = Registry("solver.bounds", "bound")


def certificates(problem: Problem, objective: Objective) -> list[Certificate]:
    """Every certificate of every bound, strongest first."""
    found = [certificate for bound in BOUNDS for certificate in bound.certify(problem, objective)]
    return sorted(found, key=lambda certificate: -certificate.value)
