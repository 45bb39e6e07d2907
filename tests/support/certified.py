"""The property of every certificate of a bound: the check proves its value from its evidence, and not a tick more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence_document import evidence_document, evidence_from


def assert_proved_and_no_more(one: Problem, found: Iterable[Certificate]) -> None:
    """Assert that each certificate is verified as it is, and refused with a bound one tick higher.

    Also that there is a certificate, and that its evidence is the same after it was written and read.
    """
    certificates = list(found)
    assert certificates, f"no certificate of {one.name}"
    for genuine in certificates:
        assert verdict(one, genuine) is Verdict.VERIFIED, genuine
        assert verdict(one, replace(genuine, value_ticks=genuine.value_ticks + 1)) is Verdict.REFUSED, genuine
        assert genuine.evidence is not None
        assert evidence_from(evidence_document(genuine.evidence)) == genuine.evidence


def verdict(one: Problem, claim: Certificate) -> Verdict:
    return check_bound(one, claim).verdict
