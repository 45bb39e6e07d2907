"""Every bound on drawn problems of every kind: never above the optimum over all orders, equal to it somewhere, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks.proofs.tasks_at_once import constructed
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import BOUNDS
from solver.construction.timing import best_times
from tests.support.claims import CLAIMS
from tests.support.daily import DAY
from tests.support.drawers import DRAWERS

# Of which it is proved at once whenever nothing fits.
PLAIN = ("passes", "passes in span", "blocks that save time")
# Schedules are constructed of one problem in so many, of others every day: that takes as long as all else does.
_CONSTRUCTED = 3
OF_MEMORY = ("stream memory", "memory over time of tasks", "waiting weight tasks")


def claims_of(name: str, number: int, one: Problem, best: Fraction) -> Iterator[tuple[str, Certificate]]:
    """All that is claimed of the problem of this number of a drawer, each with its method."""
    for method, claims in CLAIMS.items():
        if (claims.drawers is None or name in claims.drawers) and number < claims.problems:
            yield from ((method, claim) for claim in claims.of(one, best))


def attained(name: str) -> Counter[str]:
    """How often each kind of bound equals the optimum of a drawer's problems; AssertionError where a claim is wrong."""
    found = Counter[str]()
    for number, (which, one, best) in enumerate(DRAWERS[name].compared()):
        if best is None:
            assert name not in PLAIN or why_infeasible(one) is not None, which
            continue
        assert why_infeasible(one) is None, which
        by_method = [*claims_of(name, number, one, best)]
        for method, claim in by_method:
            assert claim.value_ticks <= best, (which, method, claim)
            assert _confirmed(one, claim, CLAIMS[method].searched), (which, method, claim)
            more = check_bound(one, replace(claim, value_ticks=best + 1))
            assert more.verdict is not Verdict.VERIFIED, (which, method, claim)
            found[method] += claim.value_ticks == best
        every = [claim for _, claim in by_method]
        of_memory, others = (
            max((claim.value_ticks for claim in every if (claim.kind in OF_MEMORY) is own), default=0)
            for own in (True, False)
        )
        found.update({claim.kind for claim in every if claim.value_ticks == best})
        found.update({"problems": 1, "memory alone": of_memory > others})
        if number % _CONSTRUCTED == DAY % _CONSTRUCTED:
            found.update(seen_of_schedules(one, best))
    return found


def seen_of_schedules(one: Problem, best: Fraction) -> Iterator[str]:
    """What is constructed is valid but for memory, and not below the optimum."""
    for schedule in () if one.walks.scale else constructed(one):
        timeline = best_times(one, schedule)
        broken = {violation.rule for violation in validate(timeline)}
        assert broken <= {"memory"}, (schedule.name, broken)
        assert broken or value_of(one, timeline) >= best, schedule.name
        yield "schedules" if broken or value_of(one, timeline) > best else "best schedules"


def _confirmed(one: Problem, claim: Certificate, searched: bool) -> bool:
    """By the check, or one that it says not to cover: passes of one task each on streams of their own."""
    finding = check_bound(one, claim)
    confirmed = finding.verdict is Verdict.VERIFIED or (searched and finding.verdict is Verdict.TRUSTED)
    return confirmed or finding.text.startswith("the check does not cover problems with")


@pytest.mark.parametrize("name", DRAWERS)
def test_no_claim_is_above_the_optimum_and_each_is_confirmed(name: str) -> None:
    """Nor is what is constructed below it. And what the problems are drawn for happens."""
    found = attained(name)
    assert found["problems"] > 5
    assert {aim: found[aim] for aim, least in DRAWERS[name].aims.items() if found[aim] < least} == {}


def test_problems_are_drawn_for_every_bound() -> None:
    """Of some the optimum is just what it claims, so that an argument that claims a tick more is found."""
    aims = {aim for drawer in DRAWERS.values() for aim in drawer.aims}
    assert not {bound.name for bound in BOUNDS} - aims
    assert not CLAIMS.keys() - aims
    assert {"memory alone", *OF_MEMORY} <= aims
