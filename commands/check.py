"""`check`: whether the schedule and lower bound of a schedule file, or of a plan's, hold, found without the solver."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from threading import Event

from commands.options.search import add_limits, interrupt_sets, limits_of
from commands.reports.plan_check import check_plan
from commands.shared.catalogue import COMMANDS, Command, Exit
from commands.shared.file_arguments import add_json
from commands.shared.output import write_json
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Finding, NotCoveredError, Verdict
from pipesched.checking.more_memory import as_proved
from pipesched.errors import Deadlock, Disagreement
from pipesched.files.plan_answer import is_plan_answer, plan_answer_from
from pipesched.files.problem_file import read_document
from pipesched.files.schedule_file import ScheduleFile, schedule_from
from pipesched.problem.formatting import amount
from pipesched.problem.microbatch_chains import without_scale
from pipesched.problem.problem import Objective
from pipesched.results.evidence import Refutation
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.analysis.refuted_again import refuted_again


def configure(parser: ArgumentParser) -> None:
    """A schedule file carries its problem, its bound and the evidence."""
    parser.add_argument("schedule", metavar="SCHEDULE", help="schedule file, or a plan's plan.json")
    parser.add_argument(
        "--again",
        action="store_true",
        help="repeat an exhaustive search by CP-SAT on which the bound rests, with other parameters",
    )
    add_limits(parser)
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Exit 1 if the schedule breaks a rule, or if the evidence does not prove the bound."""
    document = read_document(args.schedule)
    if is_plan_answer(document):
        return check_plan(plan_answer_from(document, args.schedule), args)
    file = schedule_from(document, args.schedule)
    wrong = _wrong(file)
    finding = _bound(file)
    if args.again and finding is not None and finding.verdict is Verdict.TRUSTED:
        finding = _again(file, finding, args)
    holds = not wrong and (finding is None or finding.verdict is not Verdict.REFUSED)
    if args.json:
        write_json(_document(args.schedule, file, wrong, finding))
    else:
        for text in wrong:
            print(text)
        if not wrong:
            print(f"{args.schedule}: the schedule is valid{_value(file)}")
        print("no lower bound is stated" if finding is None else f"{finding.verdict}: {finding.text}")
        if holds and _optimal(file, finding):
            print("so it is optimal")
    return Exit.DONE if holds else Exit.NO


def _wrong(file: ScheduleFile) -> list[str]:
    """What does not hold of the schedule."""
    found = [f"{violation.rule}: {violation.text}" for violation in validate(file.timeline)]
    if found:
        return found
    try:
        simulate(file.timeline.problem, file.timeline.schedule)
    except Deadlock as deadlock:
        return [str(deadlock)]
    return [f"claim: {text}" for text in file.false_claims()]


def _bound(file: ScheduleFile) -> Finding | None:
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


def _again(file: ScheduleFile, finding: Finding, args: Namespace) -> Finding:
    stop = Event()
    assert file.certificate is not None
    problem, certificate = as_proved(without_scale(file.timeline.problem), file.certificate)
    assert isinstance(certificate.evidence, Refutation)
    try:
        with interrupt_sets(stop):
            same = refuted_again(problem, certificate.value, certificate.evidence, limits_of(args), stop)
    except Disagreement as wrong:
        return Finding(Verdict.REFUSED, str(wrong))
    except NotCoveredError as why:
        return Finding(finding.verdict, f"{finding.text}; nor can it be with --again: {why}")
    stated = amount(problem, certificate.value)
    if same is None:
        return Finding(finding.verdict, f"{finding.text}; repeated with other parameters it came to no end")
    if same:
        return Finding(
            finding.verdict, f"{stated} rests on a search by CP-SAT; with other parameters it proved the same"
        )
    return Finding(Verdict.REFUSED, f"with other parameters CP-SAT does not refute what is below {stated}")


def _value(file: ScheduleFile) -> str:
    problem = file.timeline.problem
    if problem.objective is Objective.PERIOD:
        return ""
    return f", with a {problem.objective} of {amount(problem, measure(file.timeline).value(problem.objective))}"


def _optimal(file: ScheduleFile, finding: Finding | None) -> bool:
    """Whether the bound was verified and the schedule reaches it."""
    objective = file.timeline.problem.objective
    if finding is None or finding.verdict is not Verdict.VERIFIED or objective is Objective.PERIOD:
        return False
    return file.lower_bound == measure(file.timeline).value(objective)


def _document(path: str, file: ScheduleFile, wrong: list[str], finding: Finding | None) -> dict[str, object]:
    problem = file.timeline.problem
    return {
        "schedule": path,
        "valid": not wrong,
        "wrong": wrong,
        "lower_bound": None if file.lower_bound is None else problem.in_units(file.lower_bound),
        "bound": None if finding is None else finding.verdict.value,
        "text": None if finding is None else finding.text,
        "optimal": not wrong and _optimal(file, finding),
    }


COMMANDS.register(
    Command("check", "whether a schedule file's schedule and lower bound hold, without the solver", configure, run)
)
