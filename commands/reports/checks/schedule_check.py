"""Checks of a schedule file without the solver: broken rules, and the bound that its evidence proves."""

from __future__ import annotations

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, Verdict
from pipesched.checking.free_memory import check_most_left
from pipesched.errors import Deadlock
from pipesched.files.schedule_file import ScheduleFile
from pipesched.problem.formatting import amount
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.repetition import repeats_every
from pipesched.validation.validator import validate


def broken_rules(file: ScheduleFile) -> list[str]:
    """Return a line for each violation of a rule, such as of order, times or memory, by the schedule.

    Two other checks follow only if the ones before found nothing. If the order deadlocks, the only line says so. If it
    runs, there is a line for each figure of the file (value, free memory, bound) that its own schedule contradicts.
    Empty if nothing is wrong.
    """
    found = [f"{violation.rule}: {violation.text}" for violation in validate(file.timeline)]
    if found:
        return found
    try:
        simulate(file.timeline.problem, file.timeline.schedule)
    except Deadlock as deadlock:
        return [str(deadlock)]
    return [f"claim: {text}" for text in file.false_claims()]


def bound_finding(file: ScheduleFile) -> Finding | None:
    """Check the lower bound that the file states; None where it states none.

    Without a certificate it is not verified; it is refused if it is above the certificate's.
    """
    if file.lower_bound_ticks is None:
        return None
    if file.certificate is None:
        return Finding(Verdict.NOT_VERIFIED, "the file states a lower bound without a certificate")
    if file.certificate.value_ticks < file.lower_bound_ticks:
        problem = file.timeline.problem
        stated, own = amount(problem, file.lower_bound_ticks), amount(problem, file.certificate.value_ticks)
        return Finding(Verdict.REFUSED, f"the file states a lower bound of {stated}; its certificate speaks of {own}")
    return check_bound(file.bounded, file.certificate)


def free_finding(file: ScheduleFile) -> Finding | None:
    """Check that no schedule leaves more free memory than the file states; None where it states none."""
    return None if file.free is None else check_most_left(file.timeline.problem, file.free.bound)


def value_text(file: ScheduleFile) -> str:
    """Return the value of the schedule as the end of a sentence, with its unit, as computed from its starts.

    A period is the stated one, with the result of repeating the order; empty if none is stated.
    """
    problem = file.timeline.problem
    if problem.objective.repeats:
        if file.value_ticks is None:
            return ""
        stated = amount(problem, file.value_ticks)
        return (
            f", with a period of {stated}"
            if repeats_as_stated(file)
            else f"; its period, {stated} as stated, is not verified"
        )
    value = amount(problem, measure(file.timeline).value_ticks(problem.objective))
    return f", with {problem.objective.with_article} of {value}"


def optimal(file: ScheduleFile, finding: Finding | None, free: Finding | None) -> bool:
    """Return True if the file's schedule is shown to be optimal: its value equals a verified bound.

    `finding` and `free` are those of `bound_finding` and `free_finding`; False if `finding` is None. Where free memory
    counts first, the bound on that must be verified and reached too.
    """
    if file.free is not None and (free is None or free.verdict is not Verdict.VERIFIED or not file.free.proved):
        return False
    if file.free is None and file.timeline.problem.objective.leaves is not None:
        return False
    return reaches_bound(file, finding)


def reaches_bound(file: ScheduleFile, finding: Finding | None) -> bool:
    """Return True if the bound was verified and the schedule's value equals it; False without a `finding`.

    For a period, the value that the file states must equal it, and some part of the order must repeat with that period.
    """
    objective = file.timeline.problem.objective
    if finding is None or finding.verdict is not Verdict.VERIFIED:
        return False
    if objective.repeats:
        return file.lower_bound_ticks == file.value_ticks and repeats_as_stated(file)
    return file.lower_bound_ticks == measure(file.timeline).value_ticks(objective)


def repeats_as_stated(file: ScheduleFile) -> bool:
    """Return True if the order, repeated, runs a micro-batch every so many ticks as the file states as its period.

    False where it states none.
    """
    timeline, period = file.timeline, file.value_ticks
    return period is not None and repeats_every(timeline.problem, timeline.schedule, period)
