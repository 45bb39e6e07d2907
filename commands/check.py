"""The command `check`: verifies a schedule file, a plan answer file or a store of sweeps without the solver."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from threading import Event

from commands.options.search import add_effort, interrupt_sets, limits_of
from commands.reports.checks.plan_check import check_plan
from commands.reports.checks.schedule_check import bound_finding, broken_rules, free_finding, optimal, value_text
from commands.reports.checks.sweep_check import check_sweep, store_at
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_json
from commands.shared.output import write_json
from pipesched.checking.finding import Finding, NotCoveredError, Verdict
from pipesched.checking.relaxed.posed import posed
from pipesched.errors import Disagreement
from pipesched.files.plan_answer import is_plan_answer, plan_answer_from
from pipesched.files.problem_file import read_document
from pipesched.files.schedule_file import ScheduleFile, schedule_from
from pipesched.problem.formatting import amount
from pipesched.results.evidence import Refutation
from solver.backends.recheck_refutation import recheck_refutation


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: a schedule, plan answer or sweep store, or its folder; `--again`, its limits, and `--json`.

    The checked files carry their problem, bound and evidence, so there is no problem file.
    """
    parser.add_argument(
        "schedule",
        metavar="SCHEDULE",
        help="schedule file, a plan's plan.json, or sweep.sqlite; or the folder with what solve, plan or sweep wrote",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="repeat an exhaustive search by CP-SAT on which the bound rests, with other parameters",
    )
    add_effort(parser.add_argument_group("the search of --again"))
    parser.set_defaults(gap=0)  # which that search has none to stop at
    add_json(parser)


def run(args: Namespace) -> Exit:
    """Check a schedule, a plan answer or a store of sweeps; exit code 1 if a rule is broken or a bound is refuted.

    Bounds are those on the time and on the free memory. One that could not be verified is no failure: its verdict says
    so. With `--again` a search on which a bound rests is repeated first; of a store that is `BadInput`.
    """
    store = store_at(args.schedule)
    if store is not None:
        return check_sweep(store, args)
    args.schedule = _file_of(args.schedule)
    document = read_document(args.schedule)
    if is_plan_answer(document):
        return check_plan(plan_answer_from(document, args.schedule), args)
    file = schedule_from(document, args.schedule)
    wrong = broken_rules(file)
    finding, free = bound_finding(file), free_finding(file)
    if args.again and finding is not None and finding.verdict is Verdict.TRUSTED:
        finding = _again(file, finding, args)
    holds = not wrong and not any(one and one.verdict is Verdict.REFUSED for one in (finding, free))
    if args.json:
        write_json(_document(args.schedule, file, wrong, finding, free))
    else:
        for text in wrong:
            print(text)
        if not wrong:
            print(f"{args.schedule}: the schedule is valid{value_text(file)}")
        if free is not None:
            print(f"{free.verdict}: {free.text}")
        print("no lower bound is stated" if finding is None else f"{finding.verdict}: {finding.text}")
        if holds and optimal(file, finding, free):
            print("so it is optimal")
    return Exit.DONE if holds else Exit.NO


def _file_of(path: str) -> str:
    """Return the path of the answer in a folder that `solve -o` or `plan -o` wrote; any other path as it is."""
    known = [found for name in ("plan.json", "schedule.json") if (found := Path(path) / name).is_file()]
    return str(known[0]) if known else path


def _again(file: ScheduleFile, finding: Finding, args: Namespace) -> Finding:
    stop = Event()
    assert file.certificate is not None
    stated = amount(file.timeline.problem, file.certificate.value_ticks)
    try:
        problem, certificate, *_ = posed(file.bounded, file.certificate)
        assert isinstance(certificate.evidence, Refutation)
        with interrupt_sets(stop):
            same = recheck_refutation(problem, certificate.value_ticks, certificate.evidence, limits_of(args), stop)
    except Disagreement as wrong:
        return Finding(Verdict.REFUSED, str(wrong))
    except NotCoveredError as why:
        return Finding(Verdict.NOT_VERIFIED, f"{stated} rests on a search by CP-SAT that cannot be repeated: {why}")
    if same is None:
        return Finding(finding.verdict, f"{finding.text}; repeated with other parameters it came to no end")
    if same:
        return Finding(
            finding.verdict, f"{stated} rests on a search by CP-SAT; with other parameters it proved the same"
        )
    return Finding(Verdict.REFUSED, f"with other parameters CP-SAT does not refute what is below {stated}")


def _document(
    path: str, file: ScheduleFile, wrong: list[str], finding: Finding | None, free: Finding | None
) -> dict[str, object]:
    return {
        "schedule": path,
        "valid": not wrong,
        "wrong": wrong,
        "lower_bound": file.lower_bound,
        "bound": None if finding is None else finding.verdict.value,
        "text": None if finding is None else finding.text,
        "optimal": not wrong and optimal(file, finding, free),
    } | ({} if free is None else {"free_memory": free.verdict.value})


COMMANDS.register(
    Command(
        "check",
        "whether a schedule file's schedule and lower bound hold, without the solver",
        configure,
        run,
        Group.USE,
        "check results/schedule.json",
    )
)
