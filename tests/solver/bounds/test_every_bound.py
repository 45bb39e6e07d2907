"""Every bound on drawn problems of every kind: never above the optimum over all orders, equal to it somewhere, checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import BOUNDS
from tests.support.drawers import DRAWERS

# Of which it is proved at once whenever nothing fits.
PLAIN = ("passes", "passes in span")
OF_MEMORY = ("stream memory", "memory over time of tasks", "waiting weight tasks")


@cache
def attained(name: str) -> Counter[str]:
    """How often each kind of bound equals the optimum of a drawer's problems; AssertionError where a claim is wrong."""
    found = Counter[str]()
    for one, best in DRAWERS[name].compared():
        if best is None:
            assert name not in PLAIN or why_infeasible(one) is not None, one
            continue
        assert why_infeasible(one) is None, one
        every = [*DRAWERS[name].claims(one)]
        for claim in every:
            assert claim.value_ticks <= best, (claim, one)
            assert _verified(one, claim), (claim, one)
            assert check_bound(one, replace(claim, value_ticks=best + 1)).verdict is not Verdict.VERIFIED, (claim, one)
        of_memory, others = (
            max((claim.value_ticks for claim in every if (claim.kind in OF_MEMORY) is own), default=0)
            for own in (True, False)
        )
        found.update({claim.kind for claim in every if claim.value_ticks == best})
        found.update({"problems": 1, "memory alone": of_memory > others})
    return found


def _verified(one: Problem, claim: Certificate) -> bool:
    """By the check, or one that it says not to cover: passes of one task each on streams of their own."""
    finding = check_bound(one, claim)
    return finding.verdict is Verdict.VERIFIED or finding.text.startswith("the check does not cover problems with")


@pytest.mark.parametrize("name", DRAWERS)
def test_no_claim_is_above_the_optimum_and_each_is_verified(name: str) -> None:
    assert attained(name)["problems"] > 10


def test_every_bound_is_the_optimum_of_some_problem() -> None:
    """So that an argument that claims a tick more is found here; bounds of memory prove more than all others."""
    found = sum(map(attained, DRAWERS), Counter[str]())
    assert not {bound.name for bound in BOUNDS} - found.keys()
    assert found["memory alone"] > 8 and min(found[kind] for kind in OF_MEMORY) > 3
    assert attained("backwards that gain in one go")["stream heads and tails"] > 8
