"""One solve for the objective period: the best pattern, unrolled over the problem's micro-batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf, lcm
from threading import Event
from typing import NamedTuple

from formulations.cyclic.block_graph import BlockGraph, graph_of, refuse_no_period
from formulations.cyclic.pattern import Pattern
from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.deadline import Deadline, within
from pipesched.errors import DoesNotApply, defect_note, left_out_note
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.problem.rescale import finer
from pipesched.results.candidate import Candidate
from pipesched.results.certificate import Certificate
from pipesched.results.solution import Progress, Solution, Status
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.rescale import finer_metrics, finer_timeline
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.cyclic.pattern_extraction import is_order_of, read_pattern
from solver.cyclic.period_bounds import NOTHING, PeriodCertificate, period_certificates
from solver.cyclic.problem_period import SearchLongRun, best_period, best_unrolled, long_run
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.published import candidate


@dataclass(frozen=True)
@tunable
class SolvePeriodParams:
    """Time for unrolling a pattern and for the published schedules, and the ticks of their periods."""

    extra_seconds: float = tuned(1.0, "s beyond the time limit for the published schedules", 0, 10)
    seconds_per_pass: float = tuned(1e-4, "s to unroll a pattern, time and validate it", 1e-6, 1e-2)
    own_share: float = tuned(0.2, "of the time limit at most, kept for unrolling", 0, 1)
    most_parts: int = tuned(
        10_000, "parts of a tick; periods of published schedules that need more are rounded up", 1, 10**9
    )


_PARAMS = SolvePeriodParams()


Report = Callable[[Progress], None]


def solve_period(
    problem: Problem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    search: bool = True,
    published: bool = True,
    search_long_run: SearchLongRun | None = None,
) -> Solution:
    """Return the solution with the shortest period found, and the proved lower bound on the period.

    With `search` False only published schedules are examined, and the solution has no timeline; with `published` False
    none of them are. `search_long_run` searches short schedules of many micro-batches, from whose middle patterns are
    read. The timeline of the solution is the pattern unrolled over the problem's micro-batches. A period may be a
    fraction of a tick, so the solution's problem is the same one in finer ticks, and all its values are in these.
    Without a pattern in time it has no timeline. `limits` None: those of `Limits()`. `report` is called for every
    better pattern, with exact values in the file's unit. `BadInput` for a problem without a period.
    """
    refuse_no_period(problem)
    stop, started, limits = stop or Event(), time.monotonic(), limits or Limits()
    notes = list[str]()
    certificates = _checked(problem, period_certificates(problem, notes), notes)
    reason = why_infeasible(problem)
    if reason is not None:
        bound_ticks, text = _in_ticks(certificates[0], 1)
        return Solution(problem, Status.INFEASIBLE, bound_ticks, text, reason=reason)
    moments: list[tuple[float, Fraction]] = []

    def on_progress(pattern: Pattern) -> None:
        seconds = time.monotonic() - started
        moments.append((seconds, pattern.period))
        if report is not None:
            report(_moment(problem, seconds, pattern.period, certificates[0].value))

    found = None
    if search:
        found = best_period(problem, _to_search(problem, limits), stop, on_progress, search_long_run).found
    pattern = None if found is None else found.pattern
    notes += () if found is None else found.notes
    counts_work = limits.deterministic is not None
    latest = inf if counts_work else started + limits.seconds
    timeline = None if pattern is None else _unrolled(pattern, problem, notes, latest)
    tried = list[_Repetition]()
    if published:
        until = inf if counts_work else max(latest, min(time.monotonic(), latest) + _PARAMS.extra_seconds)
        tried = _published(problem, until, stop)
    repeat = [one.pattern for one in tried if one.pattern is not None and one.candidate.fits] if search else []
    shortest = min(repeat, key=lambda one: one.period, default=None)
    if shortest is not None and (pattern is None or timeline is None or shortest.period < pattern.period):
        own = _unrolled(shortest, problem, notes, latest)
        if own is not None:
            pattern, timeline = shortest, own
            on_progress(pattern)
    certificate = _none_above(pattern, certificates, notes)
    parts = lcm(certificate.value.denominator, 1 if pattern is None else pattern.period.denominator)
    for one in tried:
        also = lcm(parts, 1 if one.pattern is None else one.pattern.period.denominator)
        parts = also if also <= _PARAMS.most_parts else parts
    metrics = None
    if pattern is not None and timeline is not None:
        timeline = finer_timeline(timeline, parts)
        metrics = _with_period(measure(timeline), pattern, parts)
    bound, argument = _in_ticks(certificate, parts)
    optimal = pattern is not None and pattern.period == certificate.value
    status = Status.UNKNOWN if timeline is None else Status.OPTIMAL if optimal else Status.FEASIBLE
    return Solution(
        problem=finer(problem, parts),
        status=status,
        lower_bound_ticks=bound,
        certificate=argument,
        timeline=timeline,
        metrics=metrics,
        candidates=tuple(one.in_ticks(parts) for one in tried),
        history=tuple(_moment(problem, at, period, certificate.value) for at, period in moments),
        wall_seconds=time.monotonic() - started,
        interrupted=stop.is_set(),
        notes=tuple(dict.fromkeys((*problem.notes, *notes))),
    )


def _moment(problem: Problem, seconds: float, period: Fraction, bound: Fraction) -> Progress:
    return Progress(seconds, period * problem.tick, bound * problem.tick, "periodic")


def _to_search(problem: Problem, limits: Limits) -> Limits:
    """Return the limits of the search.

    Its seconds are those of `limits` less what unrolling the pattern found will take.
    """
    passes = 3 * sum(map(len, problem.microbatches_of))
    own = min(passes * _PARAMS.seconds_per_pass, _PARAMS.own_share * limits.seconds)
    return replace(limits, seconds=limits.seconds - own)


def _unrolled(pattern: Pattern, problem: Problem, notes: list[str], latest: float) -> Timeline | None:
    """Return the timeline of the pattern unrolled; None if that fails or is not valid, which is added to `notes`.

    No further unrolling is tried after `latest`, in terms of `time.monotonic`.
    """
    try:
        timeline = best_unrolled(pattern, problem, latest)
    except Exception as error:
        notes.append(left_out_note("the pattern unrolled", error))
        return None
    violations = validate(timeline)
    if violations:
        notes.append(defect_note(f"the pattern unrolled is not valid and was dropped: {violations[0].text}"))
        return None
    return timeline


def _with_period(metrics: Metrics, pattern: Pattern, parts: int) -> Metrics:
    """Return the metrics, in finer ticks, of an unrolled pattern with its period, rounded up to whole ones.

    A tick of the pattern has `parts` of them.
    """
    return replace(metrics, period_ticks=ceil(pattern.period * parts))


def _checked(problem: Problem, certificates: Sequence[PeriodCertificate], notes: list[str]) -> list[PeriodCertificate]:
    """Return the certificates from the first one on whose evidence the check does not refuse; later ones are unchecked.

    They are in descending order of value. A bound of 0, which needs no evidence, is added at the end; refusals are
    added to `notes`.
    """
    for at, one in enumerate(certificates):
        try:
            finding = check_bound(problem, Certificate(one.kind, one.value, one.text, one.device, one.evidence))
        except Exception as error:
            notes.append(left_out_note(f"the bound {one.kind!r}", error))
            continue
        if finding.verdict is not Verdict.REFUSED:
            return [*certificates[at:], NOTHING]
        notes.append(defect_note(f"a lower bound did not stand the check of its evidence: {finding.text}"))
    return [NOTHING]


def _none_above(
    pattern: Pattern | None, certificates: Sequence[PeriodCertificate], notes: list[str]
) -> PeriodCertificate:
    """Return the strongest certificate that does not exceed the pattern's period.

    If one does, all certificates of its kind are dropped, and the defect is added to `notes`. With no pattern it is the
    first certificate.
    """
    if pattern is None or pattern.period >= certificates[0].value:
        return certificates[0]
    wrong = {one.kind for one in certificates if one.value > pattern.period}
    notes.append(defect_note(f"a pattern is shorter than what {' and '.join(sorted(wrong))} claim"))
    return next(one for one in certificates if one.kind not in wrong)


def _in_ticks(certificate: PeriodCertificate, parts: int) -> tuple[Ticks, Certificate]:
    """Return a certificate's value in finer ticks, rounded down, and the certificate with that value.

    A tick of the problem has `parts` of them.
    """
    value = floor(certificate.value * parts)
    return value, Certificate(certificate.kind, value, certificate.text, certificate.device, certificate.evidence)


class _Repetition(NamedTuple):
    """A published schedule, in ticks of the problem, and the pattern that a long run of it repeats.

    The pattern is None if it has no schedule.
    """

    candidate: Candidate
    pattern: Pattern | None = None

    def in_ticks(self, parts: int) -> Candidate:
        """Return the candidate in finer ticks, of which a tick has `parts`, with its period, rounded up to whole ones.

        Without a pattern it is returned as it is.
        """
        one = self.candidate
        if one.timeline is None or one.metrics is None or self.pattern is None:
            return one
        metrics = _with_period(finer_metrics(one.metrics, parts), self.pattern, parts)
        return replace(one, timeline=finer_timeline(one.timeline, parts), metrics=metrics)


def _repeated(run: Timeline, heuristic: Heuristic, graph: BlockGraph) -> Pattern | None:
    """Return the repeating pattern of `run`, a long run of a published schedule; None if none is found.

    The pattern has the order of the run. If no pattern has, since passes of length 0 may run in another order, its
    period is the growth of the makespan for each further micro-batch.
    """

    def in_order(pattern: Pattern, middle: int) -> bool:
        return is_order_of(pattern, run, middle)

    def grows(pattern: Pattern, _: int) -> bool:
        graph_has, more = pattern.graph.microbatches, lcm(pattern.copies, 24)
        longer = replace(run.problem, microbatches=run.problem.microbatches + more * graph_has)
        try:
            ends = [measure(one).makespan_ticks for one in (run, simulate(longer, heuristic.order(longer)))]
        except DoesNotApply:
            return False
        return pattern.period == Fraction(ends[1] - ends[0], more * graph_has)

    return read_pattern(run, graph, in_order) or read_pattern(run, graph, grows)


def _published(problem: Problem, until: float, stop: Event) -> list[_Repetition]:
    """Return each published schedule with the pattern that a long run of it repeats.

    A candidate without a schedule says why it has none: it does not apply, does not come to repeat, or the time limit
    was reached. `until` is in terms of `time.monotonic`.
    """
    graph = graph_of(problem)
    unlimited = problem.with_room((None,) * problem.devices)
    long, free = long_run(problem, graph), graph_of(unlimited)

    def periodic(heuristic: Heuristic) -> _Repetition:
        one = candidate(problem, heuristic)
        if one.metrics is None:
            return _Repetition(one)
        try:
            run = simulate(long, heuristic.order(long))
        except DoesNotApply as reason:
            return _Repetition(Candidate(one.name, None, None, False, f"a long run of it {reason}"))
        pattern = _repeated(run, heuristic, graph)
        fits = pattern is not None
        pattern = pattern or _repeated(run, heuristic, free)
        if pattern is None:
            return _Repetition(Candidate(one.name, None, None, False, "a long run of it comes to no repetition"))
        return _Repetition(replace(one, fits=one.fits and fits), pattern)

    def in_time(heuristic: Heuristic) -> _Repetition:
        try:
            found = within(Deadline.after(until - time.monotonic(), stop), partial(periodic, heuristic))
        except Exception as error:
            reason = left_out_note(heuristic.name, error)
            return _Repetition(Candidate(heuristic.name, None, None, False, reason, defect=True))
        return found or _Repetition(Candidate(heuristic.name, None, None, False, "time limit reached", tried=False))

    return [in_time(heuristic) for heuristic in HEURISTICS]
