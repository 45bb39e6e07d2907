"""Results of solves and plans as outcomes of cells: exact numbers in the file's units, with packed schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipesched.files.schedule_file import ScheduleFile
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.evidence_document import evidence_document
from pipesched.results.plan import Plan
from pipesched.results.solution import Solution, Status
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.timeline import Timeline
from pipesched.sweeps.outcome import Effort, Outcome, PublishedResult
from pipesched.sweeps.packed import pack
from pipesched.sweeps.plan_evidence import plan_bound_document


def of_solution(solution: Solution, effort: Effort) -> Outcome:
    """Return the outcome of a solve; `effort` is the time, workers, seed and gap that it had.

    Its `wall_seconds` and `finished` are left to the caller.
    """
    tick, certificate = solution.problem.tick, solution.certificate
    known = Outcome(
        solution.status,
        effort,
        lower_bound=None if solution.status is Status.INFEASIBLE else solution.lower_bound_ticks * tick,
        kind=certificate.kind if certificate else "",
        claim=certificate.text if certificate else "",
        evidence=evidence_document(certificate.evidence) if certificate and certificate.evidence else None,
        published=tuple(map(published, solution.candidates)),
        reason=solution.reason,
        notes=solution.notes,
        free=solution.free,
    )
    if solution.metrics is None or solution.timeline is None or solution.value_ticks is None:
        return known
    return replace(
        _with_metrics(known, solution.problem, solution.metrics),
        value=solution.value_ticks * tick,
        schedule=_packed(ScheduleFile.of(solution, solution.timeline)),
    )


def of_plan(plan: Plan, effort: Effort) -> Outcome:
    """Return the outcome of a plan search: the figures of the best plan, and the bound on all plans.

    Its `wall_seconds`, `finished` and `published` are left to the caller.
    """
    known = Outcome(
        plan.status,
        effort,
        lower_bound=None if plan.status is Status.INFEASIBLE else plan.lower_bound,
        kind=plan.certificate.kind if plan.certificate else "",
        claim=plan.certificate.text if plan.certificate else "",
        evidence=plan_bound_document(plan),
        reason=plan.reason,
        notes=plan.notes,
        free=plan.free,
    )
    best = plan.best
    if best is None:
        return known
    choice = {
        **best.choice.document(),
        "partition": list(best.partition.counts),
        "recompute": [[list(one) for one in stage] for stage in best.partition.recompute],
        "schedule": best.schedule,
    }
    return replace(
        _with_metrics(known, best.timeline.problem, best.metrics),
        value=best.value,
        choice=choice,
        schedule=_packed(ScheduleFile(best.timeline, value_ticks=best.period_ticks)),
    )


def published(one: Candidate) -> PublishedResult:
    """Return the figures of a published schedule, or the reason why it has none, as an entry of an outcome.

    Times and memory are in the file's units. Its memory is that of the fullest device, with static memory.
    """
    if one.timeline is None:
        return PublishedResult(one.name, False, reason=one.reason)
    return replace(published_timeline(one.name, one.timeline, one.fits, one.metrics), reason=one.reason)


def published_timeline(name: str, timeline: Timeline, fits: bool, metrics: Metrics | None = None) -> PublishedResult:
    """Return the figures of a published schedule's timeline, in the file's units, as an entry of an outcome.

    `fits` says if it fits the memory. `metrics` are given if they include a period, which the timeline does not have.
    """
    metrics = metrics or measure(timeline)
    problem = metrics.problem
    return PublishedResult(
        name,
        fits,
        metrics.value_ticks(problem.objective) * problem.tick,
        metrics.makespan_ticks * problem.tick,
        metrics.span_ticks * problem.tick,
        max(own + problem.static[d] for d, own in enumerate(metrics.peak_quanta)) * problem.resolution,
    )


def rebased(known: Outcome, timeline: Timeline, choice: Mapping[str, Any] | None) -> Outcome:
    """Return a cell's outcome with the figures of a better schedule, which was found for another cell.

    The bound and the published schedules of the outcome stay. `choice` has the placement of a plan by key, None for a
    problem.
    """
    problem, metrics = timeline.problem, measure(timeline)
    return replace(
        _with_metrics(known, problem, metrics),
        status=Status.FEASIBLE,
        value=metrics.value_ticks(problem.objective) * problem.tick,
        choice=choice,
        reason="",
        schedule=_packed(ScheduleFile(timeline)),
    ).settled()


def _with_metrics(known: Outcome, problem: Problem, metrics: Metrics) -> Outcome:
    tick = problem.tick
    return replace(
        known,
        makespan=metrics.makespan_ticks * tick,
        span=metrics.span_ticks * tick,
        period=None if metrics.period_ticks is None else metrics.period_ticks * tick,
        work=max(metrics.work_ticks) * tick,
        peak_memory=tuple((own + problem.static[d]) * problem.resolution for d, own in enumerate(metrics.peak_quanta)),
        bubble=metrics.bubbles,
        idle_ratio=metrics.idle_ratio,
    )


def _packed(file: ScheduleFile) -> bytes | None:
    """Return the schedule file as packed bytes; None for a problem made in Python that no problem file can describe."""
    try:
        return pack(file)
    except ValueError:
        return None
