"""One solve for the objective period: the best pattern, unrolled over the problem's micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from threading import Event

from formulations.blocks import graph_of
from formulations.periodic_pattern import Pattern
from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.certificate import Certificate
from pipesched.errors import Disagreement, DoesNotApply
from pipesched.feasibility import why_infeasible
from pipesched.finer import finer
from pipesched.metrics import Metrics, measure
from pipesched.problem import Problem
from pipesched.simulator import simulate
from pipesched.solution import Candidate, Progress, Solution, Status
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.bounds.period import PeriodCertificate, period_certificates
from solver.candidates import candidate
from solver.limits import Limits
from solver.periodic_problem import best_period, best_unrolled, long_run
from solver.periodic_reading import read_pattern

Report = Callable[[Progress], None]


def solve_period(
    problem: Problem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    search: bool = True,
) -> Solution:
    """The shortest period found and what is proved of it; with `search` off, that of the published schedules alone.

    The timeline is the pattern unrolled over the problem's micro-batches. A period may be a fraction of a tick, so the
    solution's problem is the same problem in finer ticks, and all its values are in those. Progress is reported in the
    problem's own ticks, the value rounded up and the bound down. ValueError for passes of several tasks.
    """
    stop, started = stop or Event(), time.monotonic()
    certificate = period_certificates(problem)[0]
    reason = why_infeasible(problem)
    if reason is not None:
        floor_ = _in_ticks(certificate, 1)
        return Solution(problem, Status.INFEASIBLE, floor_.value, floor_, reason=reason)
    moments: list[tuple[float, Fraction]] = []

    def hear(pattern: Pattern) -> None:
        seconds = time.monotonic() - started
        moments.append((seconds, pattern.period))
        if report is not None:
            report(Progress(seconds, ceil(pattern.period), floor(certificate.value), "periodic"))

    pattern = best_period(problem, limits, stop, hear).pattern if search else None
    parts = 1 if pattern is None else pattern.period.denominator
    fine = finer(problem, parts)
    timeline = None if pattern is None else _unrolled(pattern, fine)
    metrics = None
    if pattern is not None and timeline is not None:
        metrics = _with_period(measure(timeline), pattern, parts)
    bound = _in_ticks(certificate, parts)
    optimal = pattern is not None and pattern.period == certificate.value
    status = Status.UNKNOWN if pattern is None else Status.OPTIMAL if optimal else Status.FEASIBLE
    return Solution(
        problem=fine,
        status=status,
        lower_bound=bound.value,
        certificate=bound,
        timeline=timeline,
        metrics=metrics,
        candidates=_published(problem, fine, parts),
        history=tuple(Progress(at, ceil(p * parts), bound.value, "periodic") for at, p in moments),
        wall_seconds=time.monotonic() - started,
        interrupted=stop.is_set(),
    )


def _unrolled(pattern: Pattern, fine: Problem) -> Timeline:
    """The pattern as a schedule; one that is not valid is a defect in this tool."""
    timeline = best_unrolled(pattern, fine)
    violations = validate(timeline)
    if violations:
        raise Disagreement(f"the pattern unrolled is not valid: {violations[0].text}")
    return timeline


def _with_period(metrics: Metrics, pattern: Pattern, parts: int) -> Metrics:
    """The metrics of an unrolled pattern: its period, rounded up where these ticks are too coarse for it."""
    return replace(metrics, period=ceil(pattern.period * parts))


def _in_ticks(certificate: PeriodCertificate, parts: int) -> Certificate:
    """The certificate in finer ticks, its value rounded down."""
    return Certificate(certificate.kind, floor(certificate.value * parts), certificate.text, certificate.device)


def _published(problem: Problem, fine: Problem, parts: int) -> tuple[Candidate, ...]:
    """Every published schedule with the period that a long run of it settles into."""
    graph = graph_of(problem)
    unlimited = replace(problem, memory=replace(problem.memory, capacity=(None,) * problem.devices))
    long, free = long_run(problem, graph), graph_of(unlimited)

    def settled(heuristic: Heuristic) -> Candidate:
        one = candidate(fine, heuristic)
        if one.metrics is None:
            return one
        try:
            run = simulate(long, heuristic.order(long))
        except DoesNotApply as reason:
            return Candidate(one.name, None, None, False, f"a long run of it {reason}")
        pattern = read_pattern(run, graph)
        fits = pattern is not None
        pattern = pattern or read_pattern(run, free)
        if pattern is None:
            return Candidate(one.name, None, None, False, "a long run of it settles into no repetition")
        return replace(one, metrics=_with_period(one.metrics, pattern, parts), fits=one.fits and fits)

    return tuple(map(settled, HEURISTICS))
