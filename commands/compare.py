"""`compare`: every published schedule and the best one found, side by side on the user's own numbers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from commands import rows
from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_problem, problem_of
from commands.output import complain, write_json
from commands.searching import add_limits, search
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, Deadlock
from pipesched.problem import Objective, Problem
from pipesched.solution import Candidate, Solution, Status
from runtime.imports import IMPORTERS, import_schedule
from solver.candidates import judged
from solver.solve import without_search


def configure(parser: ArgumentParser) -> None:
    """The contract's options."""
    add_problem(parser)
    add_limits(parser)
    parser.add_argument("--schedules", metavar="A,B", help="only these schedules (default: all)")
    parser.add_argument(
        "--with",
        dest="others",
        metavar="FILE",
        nargs="+",
        default=[],
        help="also these schedules of other programs: " + "; ".join(one.description for one in IMPORTERS),
    )
    parser.add_argument("--no-optimal", action="store_true", help="do not search for a better one")


def run(args: Namespace) -> Exit:
    """Simulate all, search unless told not to, print."""
    problem = problem_of(args.problem, args.objective)
    if problem.objective is Objective.PERIOD:
        raise BadInput("objective: found period; this version compares by makespan or span (see --objective)")
    names = _names(args.schedules)
    others = [_other(problem, path) for path in args.others]
    solution = without_search(problem) if args.no_optimal else search(problem, args)
    if solution.status is Status.INFEASIBLE:
        complain(f"infeasible: {solution.reason}")
        if args.json:
            write_json(rows.document(problem, solution.candidates, solution.lower_bound))
        return Exit.NO
    solution = replace(solution, candidates=(*solution.candidates, *others))
    wanted = (*(names or HEURISTICS.names()), rows.OURS, *(other.name for other in others))
    shown = [candidate for candidate in rows.with_solution(solution) if candidate.name in wanted]
    if args.no_optimal:
        shown = [candidate for candidate in shown if candidate.name != rows.OURS]
    if args.json:
        write_json(rows.document(problem, shown, solution.lower_bound))
    else:
        rows.show(problem, shown, solution.lower_bound, reasons=True)
        _explain(solution)
    return Exit.INTERRUPTED if solution.interrupted else Exit.DONE


def _names(listed: str | None) -> list[str] | None:
    """The schedules asked for; an unknown name is bad input."""
    if listed is None:
        return None
    return [HEURISTICS[name.strip()].name for name in listed.split(",")]


def _other(problem: Problem, path: str) -> Candidate:
    """Another program's schedule on this problem; an order that locks is bad input."""
    try:
        return judged(problem, import_schedule(path, problem), Path(path).name)
    except Deadlock as deadlock:
        raise BadInput(f"{path}: {deadlock}") from None


def _explain(solution: Solution) -> None:
    if solution.certificate:
        print(f"lower bound ({solution.certificate.kind}): {solution.certificate.text}")


COMMANDS.register(Command("compare", "published schedules against the best one, on your numbers", configure, run))
