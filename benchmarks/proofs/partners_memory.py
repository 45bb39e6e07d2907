"""Problems whose partners' memory together limits them: their bounds against the exact model, and forged evidence.

The bound with the memory of each device alone is that of the problem in which activations move to a host without limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from random import Random

from benchmarks.proofs.evidence_mutations import mutated
from benchmarks.proofs.memory_options import exact
from pipesched.checking.check import ARGUMENTS, check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.evidence import MemoryOfPartners, relaxation_of
from solver.bounds.saving.certificates import certificates
from tests.support.tiny_partners import tiny_partners

RAISED, ATTAINED, FORGED = "raised by partners", "strongest bound attained", "forged certificates"
_ALL = "all"  # what every problem counts under
_FORGERIES = 4  # of each certificate that reads the memory of partners


def compare(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return what the problem of a number has, and its outcomes, of problems whose bound partners raise.

    AssertionError for a bound above the exact model's best value, for one that the check does not verify, and for a
    forged certificate above that value that it verifies.
    """
    random = Random(number)
    one = tiny_partners(random)
    if why_infeasible(one) is not None:
        return (), ()
    found = certificates(one, one.objective)
    if not raised(one, found):
        return (_ALL,), ("not raised",)
    known = exact(one)
    if known is None:
        return _features(one), ("nothing fits",)
    best, outcomes = Fraction(known[0]), ["problems", RAISED]
    for certificate in found:
        assert certificate.value_ticks <= best, certificate
        assert check_bound(one, certificate).verdict is Verdict.VERIFIED, certificate
        if isinstance(relaxation_of(certificate.evidence), MemoryOfPartners):
            for _ in range(_FORGERIES):
                forged = mutated(one, certificate, best, [*ARGUMENTS], random)
                verified = check_bound(one, forged).verdict is Verdict.VERIFIED
                assert not verified or forged.value_ticks <= best, forged
                outcomes.append(FORGED)
    return _features(one), [*outcomes, *[ATTAINED] * (found[0].value_ticks == best)]


def raised(problem: Problem, found: Sequence[Certificate]) -> bool:
    """Return True if the strongest of the bounds is above all that read the memory of each device alone."""
    if not isinstance(relaxation_of(found[0].evidence), MemoryOfPartners):
        return False
    copies = [own.offload and own.offload._replace(to=None) for own in problem.stages]
    alone = problem.with_stages(offload=copies)
    return found[0].value_ticks > certificates(alone, alone.objective)[0].value_ticks


def _features(problem: Problem) -> list[str]:
    return [_ALL, *_named(problem)]


def _named(problem: Problem) -> Iterator[str]:
    where, stages = problem.placement, problem.stages
    yield f"{where.devices} devices"
    if max(map(len, where.stages_of)) > 1:
        yield "several stages a device"
    if len(where.chains) > 1:
        yield "several chains"
    if problem.splittable:
        yield "split backwards"
    if any(own.offload and own.offload.amount < own.activation for own in stages):
        yield "parts that move"
    if any(own.offload and own.offload.to is None for own in stages):
        yield "a host"
    if any(own.recompute for own in stages):
        yield "recomputation"
    to = {(where.stage_device[s], own.offload.to) for s, own in enumerate(stages) if own.offload}
    if any((b, a) in to for a, b in to):
        yield "both ways"
