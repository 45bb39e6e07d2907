"""Conditions under which a bound may be based on an exhaustive search by CP-SAT: impossible claims are refused."""

from __future__ import annotations

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.results.evidence import Refutation


def require_search(problem: Problem, evidence: Refutation) -> None:
    """Raise `RefusedEvidenceError` if CP-SAT cannot have searched the devices of the evidence, and for any period.

    None as devices names the whole problem; otherwise they must exist, at least one, each named once.
    """
    if problem.objective.repeats:
        raise RefusedEvidenceError("no search by CP-SAT bounds a period")
    if evidence.devices is None:
        return
    if not evidence.devices or len(set(evidence.devices)) < len(evidence.devices):
        raise RefusedEvidenceError("the devices of the search are not some, each named once")
    for device in evidence.devices:
        if not 0 <= device < problem.devices:
            raise RefusedEvidenceError(f"there is no device {device}")
