"""Bounds by diagrams of activation modes on small problems, against the exact model's optimum, and their check."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from threading import Event

from benchmarks.proofs.memory_options import exact
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from solver.bounds.saving.certificates import certificates
from solver.diagram.activation_mode_bounds import bounds_of_activation_modes
from tests.support.mode_problems import mode_problem
from tests.support.piece_problems import features

# Labels of a bound; and how far above and below what is known is asked for, in ticks.
_WORK, _AROUND = 10**6, 4


def modes_of_activations(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """The problem's features, and its bounds; AssertionError where one is above the optimum or is refused."""
    problem = mode_problem(Random(number))
    known = None if why_infeasible(problem) is not None else exact(problem)
    if known is None:
        return ("all",), ("nothing fits",)
    return features(problem), ("problems", *_against(problem, float(known[0])))


def _against(problem: Problem, optimum: float) -> Sequence[str]:
    in_words = max(one.value_ticks for one in certificates(problem, problem.objective))
    around = max(0.0, float(in_words) - _AROUND), optimum + _AROUND
    found = [*bounds_of_activation_modes(problem, Event(), lambda: around, _WORK)]
    for one in found:
        assert one.value_ticks <= optimum, one
        assert check_bound(problem, one).verdict is Verdict.VERIFIED, one
    best = max((one.value_ticks for one in found), default=0)
    stronger, attained = best > in_words, best == optimum
    return ("above every bound in words",) * stronger + ("equal to the optimum",) * attained
