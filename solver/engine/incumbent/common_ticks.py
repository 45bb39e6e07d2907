"""Conversion of a solution to ticks in which its schedule and its bound are integers.

The value of a span, or a bound on it, may be a fraction of the problem's tick.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm

from pipesched.problem.rescale import finer
from pipesched.results.candidate import Candidate
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import finer_metrics, finer_timeline
from pipesched.schedule.timeline import Timeline


def in_common_ticks(solution: Solution, best: Timeline | None, certificate: Certificate) -> Solution:
    """Return the solution with this timeline and certificate, in ticks in which all its times are integers.

    `best` may be in finer ticks than the solution's problem, None for no schedule; `certificate` is in the solution's
    ticks.
    """
    problem = solution.problem
    times = Fraction(1) if best is None else problem.tick / best.problem.tick
    parts = lcm(times.numerator, certificate.value_ticks.denominator)
    bound = int(certificate.value_ticks * parts)
    timeline = None if best is None else finer_timeline(best, int(parts / times))
    return replace(
        solution,
        problem=finer(problem, parts),
        lower_bound_ticks=bound,
        certificate=replace(certificate, value_ticks=bound),
        timeline=timeline,
        metrics=None if timeline is None else measure(timeline),
        candidates=tuple(finer_candidate(one, parts) for one in solution.candidates),
    )


def finer_candidate(one: Candidate, parts: int) -> Candidate:
    """Return a published schedule's result in ticks that are `parts` times finer."""
    if one.timeline is None or one.metrics is None or parts == 1:
        return one
    return replace(one, timeline=finer_timeline(one.timeline, parts), metrics=finer_metrics(one.metrics, parts))
