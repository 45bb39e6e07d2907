"""`compare`: every published schedule and the best one found, side by side on the user's own numbers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commands import measured_rows, noisy, rows
from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_json, add_objective, problem_of
from commands.output import complain, files_written, note, write_json
from commands.searching import add_limits, refuse_period, search
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, Deadlock
from pipesched.noise import Distribution
from pipesched.problem import Objective, Problem
from pipesched.solution import Candidate, Solution, Status
from runtime.imports import IMPORTERS, import_schedule
from solver.candidates import candidate, judged
from solver.solve import without_search
from solver.solve_period import solve_period


def configure(parser: ArgumentParser) -> None:
    """The contract's options."""
    parser.add_argument(
        "problem", metavar="PROBLEM", nargs="?", help="problem file (with --measured: default, its own)"
    )
    add_objective(parser)
    add_json(parser)
    add_limits(parser)
    noisy.add_noise(parser, seed=False)
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
    parser.add_argument(
        "--measured",
        metavar="TRACE",
        nargs="+",
        help="instead: what `run` measured, beside the prediction and a replay with the measured durations",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="with --noise: picture of the samples, .png or .svg")


def run(args: Namespace) -> Exit:
    """Simulate all, search unless told not to, print; or set measured traces beside their prediction."""
    if args.problem is None and not args.measured:
        raise BadInput("found no problem file; allowed: compare PROBLEM, or compare --measured TRACE")
    if args.output and args.noise is None:
        raise BadInput("found --output without --noise; allowed: with --noise, whose samples it draws")
    if args.measured:
        return _measured(args)
    problem = problem_of(args.problem, args.objective)
    if args.others or args.noise is not None:
        refuse_period(problem, "--with and --noise are")
    names = _names(args.schedules)
    others = [_other(problem, path) for path in args.others]
    solution = _published(problem) if args.no_optimal else search(problem, args)
    problem = solution.problem
    if solution.status is Status.INFEASIBLE:
        complain(f"infeasible: {solution.reason}")
        if args.json:
            write_json(rows.document(problem, solution.candidates, solution.lower_bound))
        return Exit.NO
    listed = names or HEURISTICS.names()
    # A search tries no more of them than it has time and use for.
    untried = [] if solution.interrupted else sorted({*listed} - {one.name for one in solution.candidates})
    published = [candidate(problem, HEURISTICS[name]) for name in untried]
    solution = replace(solution, candidates=(*solution.candidates, *published, *others))
    wanted = (*listed, rows.OURS, *(other.name for other in others))
    shown = [candidate for candidate in rows.with_solution(solution) if candidate.name in wanted]
    if args.no_optimal:
        shown = [candidate for candidate in shown if candidate.name != rows.OURS]
    noise = {} if args.noise is None else _under_noise(problem, shown, args)
    files = [_draw(problem, noise, args)] if args.output and noise else []
    if args.json:
        document = rows.document(problem, shown, solution.lower_bound)
        if args.noise is not None:
            values = {name: noisy.figures(problem, one) for name, one in noise.items()}
            document["noise"] = noisy.document(args, {"schedules": values})
        write_json(document)
        for path in files:
            note(f"wrote {path}")
    else:
        rows.show(problem, shown, solution.lower_bound, reasons=True)
        _explain(solution)
        if noise:
            noisy.show(problem, f"{problem.objective.value} under noise: {noisy.settings(args)}", list(noise.items()))
        files_written(files)
    return Exit.INTERRUPTED if solution.interrupted else Exit.DONE


def _published(problem: Problem) -> Solution:
    """Bounds and published schedules alone."""
    if problem.objective is Objective.PERIOD:
        return solve_period(problem, search=False)
    return without_search(problem)


def _measured(args: Namespace) -> Exit:
    """Traces beside their prediction; nothing is searched."""
    problem = problem_of(args.problem, args.objective) if args.problem else None
    found = measured_rows.comparisons(args.measured, problem)
    if args.json:
        write_json(measured_rows.document(found))
    else:
        measured_rows.show(found)
    return Exit.DONE


def _under_noise(problem: Problem, shown: Sequence[Candidate], args: Namespace) -> dict[str, Distribution]:
    """The objective of every schedule that applies under the same noise."""
    return {
        one.name: noisy.noisy(one.timeline, args).of(problem.objective) for one in shown if one.timeline is not None
    }


def _draw(problem: Problem, noise: dict[str, Distribution], args: Namespace) -> Path:
    title = f"{problem.name}\n{noisy.settings(args)}"
    return noisy.draw(problem, problem.objective.value.capitalize(), title, list(noise.items()), Path(args.output))


def _names(listed: str | None) -> list[str] | None:
    """The schedules asked for; unknown names are bad input, each on its line."""
    if listed is None:
        return None
    names = [name.strip() for name in listed.split(",")]
    mistakes: list[str] = []
    for name in names:
        try:
            HEURISTICS[name]
        except BadInput as error:
            mistakes += error.mistakes
    if mistakes:
        raise BadInput(*mistakes)
    return names


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
