"""Attacks of a bound, and of the check of it, that end at the first wrong claim: what a mutant must not survive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from benchmarks.proofs.bound_attack import problems
from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.branch import Branch
from benchmarks.proofs.exhaustive.optimum import NotTiny
from benchmarks.proofs.in_order import compared_to
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import CrossingStepsBelow

# Orders that are tried for one problem.
_STEPS = 3_000


class Refuted(NamedTuple):
    """The problems looked at until a claim was wrong, and the branch."""

    problems: int
    branch: str


def bound_refuted(names: tuple[str, ...], count: int) -> Refuted | None:
    """By one of so many problems of one of these branches, whose optimum is below what the bound claims."""
    return _first(names, count, lambda _, problem, value: _compared(problem, value) is None)


def check_refuted(names: tuple[str, ...], count: int) -> Refuted | None:
    """By one of so many problems: the check proves more than the optimum, or not what the bound claims."""
    return _first(names, count, _verdict_wrong)


def _first(names: tuple[str, ...], count: int, wrong: Callable[[Branch, Problem, Fraction], bool]) -> Refuted | None:
    for branch in (one for one in BRANCHES if one.name in names):
        seen = 0
        for problem, claim in problems(branch, 0):
            try:
                seen += 1
                if wrong(branch, problem, claim.value):
                    return Refuted(seen, branch.name)
            except NotTiny:
                continue
            if seen >= count:
                break
    return None


def _compared(problem: Problem, value: Fraction) -> bool | None:
    """Whether some schedule has the value; None where one is below it."""
    best = compared_to(problem, problem.objective, value, _STEPS)
    return None if best.below else best.attained


def _verdict_wrong(branch: Branch, problem: Problem, value: Fraction) -> bool:
    """Of the strongest certificate as it is; of a tick more than the value; of that with a value above it."""
    own = max(branch.further(problem), key=lambda one: one.value)
    if check_bound(problem, own).verdict is not Verdict.VERIFIED:
        return True
    if not _compared(problem, value):
        return False
    more = replace(own, value=value + 1)
    return any(check_bound(problem, one).verdict is Verdict.VERIFIED for one in (more, _raised(more)))


def _raised(claim: Certificate) -> Certificate:
    own = claim.evidence
    return replace(claim, evidence=replace(own, below=own.below + 5)) if isinstance(own, CrossingStepsBelow) else claim
