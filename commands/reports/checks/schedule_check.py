"""What does not hold of a schedule file, and what its evidence proves: found without the solver."""

from __future__ import annotations

from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, Verdict
from pipesched.errors import Deadlock
from pipesched.files.schedule_file import ScheduleFile
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate


def broken_rules(file: ScheduleFile) -> list[str]:
    """What does not hold of the schedule."""
    found = [f"{violation.rule}: {violation.text}" for violation in validate(file.timeline)]
    if found:
        return found
    try:
        simulate(file.timeline.problem, file.timeline.schedule)
    except Deadlock as deadlock:
        return [str(deadlock)]
    return [f"claim: {text}" for text in file.false_claims()]


def bound_finding(file: ScheduleFile) -> Finding | None:
    """The check of the lower bound that the file states."""
    if file.lower_bound is None:
        return None
    if file.certificate is None:
        return Finding(Verdict.NOT_VERIFIED, "the file states a lower bound without a certificate")
    if file.certificate.value < file.lower_bound:
        problem = file.timeline.problem
        stated, own = amount(problem, file.lower_bound), amount(problem, file.certificate.value)
        return Finding(Verdict.REFUSED, f"the file states a lower bound of {stated}; its certificate speaks of {own}")
    return check_bound(file.timeline.problem, file.certificate)


def value_text(file: ScheduleFile) -> str:
    """The value of its schedule, as the end of a sentence; nothing for a period, which no timeline tells."""
    problem = file.timeline.problem
    if problem.objective is Objective.PERIOD:
        return ""
    return f", with a {problem.objective} of {amount(problem, measure(file.timeline).value(problem.objective))}"


def reaches_bound(file: ScheduleFile, finding: Finding | None) -> bool:
    """Whether the bound was verified and the schedule reaches it."""
    objective = file.timeline.problem.objective
    if finding is None or finding.verdict is not Verdict.VERIFIED or objective is Objective.PERIOD:
        return False
    return file.lower_bound == measure(file.timeline).value(objective)
