"""The worth of one schedule file or plan of an instance: its value and its bound, checked without the solver."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from benchmarks.library.instance import Instance, asked
from commands.reports.checks.plan_check import broken_plan, plan_findings, plan_value
from commands.reports.checks.schedule_check import bound_finding, broken_rules, repeats_as_stated
from pipesched.checking.finding import Verdict
from pipesched.checking.plan_check import weakest
from pipesched.errors import BadInput
from pipesched.files.plan_answer import PlanAnswer, is_plan_answer, plan_answer_from
from pipesched.files.problem_file import read_document
from pipesched.files.schedule_file import ScheduleFile, schedule_from
from pipesched.results.bound_names import bound_name
from pipesched.schedule.metrics import measure

OF_ALL_PLANS = "all partitions, placement by placement"


@dataclass(frozen=True)
class Entry:
    """A file of an instance; value and bound in the problem's time unit.

    `refused` says why nothing of it counts. `trusted`: the bound rests on an exhaustive search by CP-SAT, which the
    check does not repeat.
    """

    path: Path
    value: Fraction | None = None
    bound: Fraction | None = None
    proved_by: str = ""
    trusted: bool = False
    refused: str = ""


def entry(instance: Instance, path: Path) -> Entry:
    """Check a file as `pipesched check` does, and that it answers this instance."""
    try:
        document = read_document(path)
        if is_plan_answer(document):
            return _of_plan(instance, path, plan_answer_from(document, str(path)))
        return _of_schedule(instance, path, schedule_from(document, str(path)))
    except BadInput as error:
        return Entry(path, refused="; ".join(error.mistakes))


def _of_schedule(instance: Instance, path: Path, file: ScheduleFile) -> Entry:
    problem = file.timeline.problem
    if asked(problem) != instance.document:
        return Entry(path, refused=f"{path}: its problem is not that of the instance")
    wrong, finding = broken_rules(file), bound_finding(file)
    if not wrong and problem.objective.repeats and not repeats_as_stated(file):
        wrong = ["the period that it states is not verified"]
    if finding is not None and finding.verdict is Verdict.REFUSED:
        wrong.append(finding.text)
    if wrong:
        return Entry(path, refused="; ".join(f"{path}: {text}" for text in wrong))
    period = problem.objective.repeats
    ticks = file.value_ticks if period else measure(file.timeline).value_ticks(problem.objective)
    assert ticks is not None
    if finding is None or finding.verdict is Verdict.NOT_VERIFIED or file.certificate is None:
        return Entry(path, ticks * problem.tick)
    assert file.lower_bound_ticks is not None
    bound, by = file.lower_bound_ticks * problem.tick, bound_name(file.certificate.kind)
    return Entry(path, ticks * problem.tick, bound, by, finding.verdict is Verdict.TRUSTED)


def _of_plan(instance: Instance, path: Path, answer: PlanAnswer) -> Entry:
    if asked(answer.problem) != instance.document:
        return Entry(path, refused=f"{path}: its problem is not that of the instance")
    wrong, findings = broken_plan(answer), plan_findings(answer)
    verdict = weakest(findings)
    wrong += [one.text for one in findings if one.verdict is Verdict.REFUSED]
    if wrong:
        return Entry(path, refused="; ".join(f"{path}: {text}" for text in wrong))
    if verdict is Verdict.NOT_VERIFIED:
        return Entry(path, plan_value(answer))
    return Entry(path, plan_value(answer), answer.lower_bound, OF_ALL_PLANS, verdict is Verdict.TRUSTED)
