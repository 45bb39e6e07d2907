"""The optimum by the exact model, stored: of problems whose activations may be moved or computed again."""

from __future__ import annotations

from fractions import Fraction

from benchmarks.proofs.memory_options import exact
from pipesched.problem.problem import Problem
from tests.support.optima import fraction_as_json, fraction_of_json, stored


@stored(fraction_as_json, fraction_of_json, ValueError)
def exact_optimum(problem: Problem) -> Fraction | None:
    """Return the optimum in ticks by the exact model, stored between runs; None if nothing fits."""
    found = exact(problem)
    return None if found is None else Fraction(found[0])
