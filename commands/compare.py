"""The command `compare`: published schedules and the best schedule found, side by side on the user's problem."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from commands.options import noise as noise_options
from commands.options.compared import add_schedules, imported, published
from commands.options.plan_compare import plan_rows
from commands.options.search import add_limits, interrupt_sets, limits_of, refuse_period, search
from commands.reports import schedule_table, side_by_side
from commands.reports.plans import plan_comparison
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import (
    add_json,
    add_objective,
    picture_kind,
    problem_in_document,
    problem_of,
)
from commands.shared.not_applicable import add_why_not
from commands.shared.output import complain, files_written, next_step, note, write_json
from commands.shared.watch import add_watch, stop_event
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.atomic_write import refuse_unwritable
from pipesched.files.problem_file import read_document
from pipesched.measurement.comparison import compared
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import OURS, comparison_document, with_solution
from pipesched.results.solution import Solution, Status
from pipesched.simulation.noise import Distribution
from pipesched.sweeps.field_paths import is_plan
from solver.analysis.published_comparison import all_tried, search_limits
from solver.engine.incumbent.common_ticks import finer_candidate
from solver.planning.schedule_comparison import FREE
from solver.solve import without_search


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: problem files or a plan file, and the options for the schedules, the search and the output.

    Schedules: `--schedules`, `--with`, `--measured` (traces to read), `--no-optimal`. Search: objective and limits.
    Output: noise, `--bars`, `--why-not`, `--watch`, `--json`, and `-o` for a picture of the noise or of the traces.
    """
    parser.add_argument(
        "problems",
        metavar="PROBLEM",
        nargs="*",
        help="problem file (with --measured: default, its own); several are set side by side, each with its own "
        "search; or a plan file: for each schedule its own best partition, placement and recomputation",
    )
    add_objective(parser)
    add_json(parser)
    add_watch(parser)
    add_limits(parser)
    noise_options.add_noise(parser, seed=False)
    add_schedules(parser)
    parser.add_argument(
        "--bars",
        action=BooleanOptionalAction,
        help="a bar for each schedule's time (default: on a terminal that is wide enough)",
    )
    add_why_not(parser)
    parser.add_argument("--no-optimal", action="store_true", help="do not search for a better one")
    parser.add_argument(
        "--measured",
        metavar="TRACE",
        nargs="+",
        help="instead: what `run` measured, or traces of other programs as `profile --from-trace` reads them, beside "
        "the prediction, with what each of its assumptions costs; of one run also the best order for its times",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="with --noise: picture of the samples, .png, .svg, .pdf; with --measured: of late starts, or .html",
    )


def run(args: Namespace) -> Exit:
    """Simulate the schedules, search a better one unless `--no-optimal`, and print all side by side.

    A plan file, several problem files, or `--measured` (traces against their prediction) have tables of their own. For
    one problem, exit code 1 if it is infeasible or none of the schedules in `--schedules` applies, 130 after Ctrl-C.
    `BadInput` for options that do not go together.
    """
    if not args.problems and not args.measured:
        raise BadInput("found no problem file; allowed: compare PROBLEM, or compare --measured TRACE")
    if args.output and args.noise is None and not args.measured:
        raise BadInput("found --output without --noise; allowed: with --noise, whose samples it draws, or --measured")
    if args.output:
        refuse_unwritable(args.output)
    if len(args.problems) > 1:
        return _several(args)
    document = read_document(args.problems[0]) if args.problems else None
    if is_plan(document):
        return _of_plan(args, document)
    if args.measured:
        return _measured(args, document)
    problem = problem_in_document(document, args.problems[0], args.objective)
    if args.others or args.noise is not None:
        refuse_period(problem, "--with and --noise are")
    if args.output:
        picture_kind(Path(args.output))  # a wrong ending is said before the search
    names = published(args.schedules)
    others = [imported(problem, path) for path in args.others]
    solution = _found(problem, args)
    parts = int(problem.tick / solution.problem.tick)
    problem = solution.problem
    if solution.status is Status.INFEASIBLE:
        complain(f"infeasible: {solution.reason}")
        if args.json:
            write_json(comparison_document(problem, solution.candidates, solution.lower_bound_ticks))
        return Exit.NO
    listed = names or HEURISTICS.names()
    solution = _all_tried(solution, listed, args)
    theirs = [finer_candidate(other, parts) for other in others]
    solution = replace(solution, candidates=(*solution.candidates, *theirs))
    wanted = (*listed, OURS, *(other.name for other in others))
    shown = [candidate for candidate in with_solution(solution) if candidate.name in wanted]
    if args.no_optimal:
        shown = [candidate for candidate in shown if candidate.name != OURS]
    none = bool(names) and not any(one.metrics is not None for one in shown if one.name != OURS)
    noise = {} if args.noise is None else _under_noise(problem, shown, args)
    fitting = {one.name for one in shown if one.fits}
    marked = [(name if name in fitting else f"{name} (does not fit)", one) for name, one in noise.items()]
    files = [_draw(problem, marked, args)] if args.output and noise else []
    _say(solution, shown, noise, marked, files, args)
    if none:
        complain("none of these schedules applies to the problem")
    return Exit.INTERRUPTED if solution.interrupted else Exit.NO if none else Exit.DONE


def _say(
    solution: Solution,
    shown: Sequence[Candidate],
    noise: dict[str, Distribution],
    marked: Sequence[tuple[str, Distribution]],
    files: Sequence[Path],
    args: Namespace,
) -> None:
    """Print the comparison, as JSON or as tables, with the schedules' values under noise if it was asked for.

    `shown` are the schedules of the table; `noise` are the distributions by schedule, `marked` the same with a mark at
    schedules that do not fit; `files` are those written.
    """
    problem = solution.problem
    if args.json:
        document = comparison_document(problem, shown, solution.lower_bound_ticks)
        document |= {"notes": list(solution.notes)} if solution.notes else {}
        if args.noise is not None:
            values = {name: noise_options.figures(problem, one) for name, one in noise.items()}
            document["noise"] = noise_options.document(args, {"schedules": values})
        write_json(document)
        for path in files:
            note(f"wrote {path}")
    else:
        why_not = args.why_not or bool(args.schedules)
        schedule_table.show(problem, shown, solution.lower_bound_ticks, args.bars, why_not)
        _explain(solution)
        if noise:
            noise_options.show(problem, f"{problem.objective.name} under noise: {noise_options.settings(args)}", marked)
        files_written(files)
        if any(one.fits for one in shown):
            next_step(["solve", *args.problems, "-o", "results"], "writes the best schedule, pictures and a report")


def _of_plan(args: Namespace, document: object) -> Exit:
    """Compare published schedules on a plan file, each with its own best plan of the model, and print the comparison.

    `document` is the content of the file.
    Exit code 1 if it is proved that no plan fits with any of the schedules compared, or if none applies; 3 if none was
    found. 130 if the user interrupted the search.
    """
    found = plan_rows(document, args.problems[0], args)
    if args.json:
        write_json(plan_comparison.document(found))
    else:
        plan_comparison.show(found, FREE, args.problems[0])
    if found.interrupted:
        return Exit.INTERRUPTED
    if any(row.fits for row in found.rows):
        return Exit.DONE
    return Exit.NO if {row.status for row in found.rows} <= {None, Status.INFEASIBLE} else Exit.NOT_FOUND


def _several(args: Namespace) -> Exit:
    """Compare schedules on several problems and print them side by side; exit code 1 if a problem is infeasible.

    After Ctrl-C it is 130, and the problems that follow the one under way are left out. `BadInput` for an option that
    is for one problem alone.
    """
    options = {"--with": args.others, "--noise": args.noise is not None, "--measured": args.measured}
    found = [name for name, given in options.items() if given]
    if found:
        raise BadInput(f"found several problems and {found[0]}; allowed: one problem with {found[0]}")
    problems = [problem_of(path, args.objective) for path in args.problems]
    listed = published(args.schedules) or HEURISTICS.names()
    solutions: list[Solution] = []
    for problem in problems:
        one = _found(problem, args)
        solutions.append(one if one.status is Status.INFEASIBLE else _all_tried(one, listed, args))
        if solutions[-1].interrupted:
            break
    wanted = listed if args.no_optimal else [*listed, OURS]
    if args.json:
        write_json(side_by_side.documents(solutions, wanted))
    else:
        side_by_side.show(solutions, wanted)
    if any(one.interrupted for one in solutions):
        return Exit.INTERRUPTED
    return Exit.NO if any(one.status is Status.INFEASIBLE for one in solutions) else Exit.DONE


def _found(problem: Problem, args: Namespace) -> Solution:
    """Return the solution of a search, or with `--no-optimal` that of bounds and published schedules alone."""
    if args.no_optimal:
        return without_search(problem, limits_of(args))
    return search(problem, args, limits=search_limits(problem, limits_of(args)))


def _all_tried(solution: Solution, listed: Sequence[str], args: Namespace) -> Solution:
    """Return the solution with the listed schedules that the search did not try, as far as the time limit allows.

    Ctrl-C keeps those tried so far.
    """
    if solution.interrupted:
        return solution
    stop = stop_event(args)
    with interrupt_sets(stop):
        found = all_tried(solution, listed, limits_of(args), stop)
    return replace(found, interrupted=stop.is_set())


def _measured(args: Namespace, document: object) -> Exit:
    """Compare measured runs with their prediction and explain the differences; find the best order for a single run.

    Each file of `pipesched run` is a run; if any file is of another program, all files together are one. The problem is
    that of the given file, whose content is `document`, or the trace's own. The best order is for its measured times,
    and is searched unless `--no-optimal` is given or the trace does not determine all of them. `-o` writes a picture,
    or a report as .html. The exit code is that of an interrupted search, else 0; it does not depend on the differences.
    """
    from commands.reports.measured import measured_table, traced

    problem = problem_in_document(document, args.problems[0], args.objective) if args.problems else None
    if args.output:
        measured_table.drawn_as(Path(args.output))  # a wrong ending is said before the search
    notes: list[str] | None = None
    if traced.is_foreign(args.measured):
        run, trace = traced.foreign_run(args.measured, problem, args.objective)
        found, notes = [measured_table.explained(run, run.problem)], list(trace.notes)
    else:
        found = measured_table.comparisons(args.measured, problem)
    again = found[0].recalibrated if len(found) == 1 else None
    best = None if args.no_optimal or again is None else search(again, args)
    sentences = [] if best is None or again is None else traced.best_sentences(compared(found[0].run, again), best)
    if args.json:
        unread = {} if notes is None else {"not_read": notes}
        write_json(measured_table.document(found) | unread | traced.best_document(best))
    else:
        measured_table.show(found)
        for text in [*(f"not read: {note}" for note in notes or ()), *sentences]:
            print(text)
    if args.output:
        path = measured_table.draw(found, best, sentences, Path(args.output))
        note(f"wrote {path}") if args.json else files_written([path])
    return Exit.INTERRUPTED if best is not None and best.interrupted else Exit.DONE


def _under_noise(problem: Problem, shown: Sequence[Candidate], args: Namespace) -> dict[str, Distribution]:
    """Return the distribution of the objective by schedule, for each that applies, all under the same noise."""
    return {
        one.name: noise_options.noisy(one.timeline, args).of(problem.objective)
        for one in shown
        if one.timeline is not None
    }


def _draw(problem: Problem, marked: Sequence[tuple[str, Distribution]], args: Namespace) -> Path:
    title = f"{problem.name}\n{noise_options.settings(args)}"
    return noise_options.draw(problem, problem.objective.name.capitalize(), title, marked, Path(args.output))


def _explain(solution: Solution) -> None:
    if solution.certificate:
        print(f"lower bound ({solution.certificate.name}): {solution.certificate.text}")
    for text in solution.notes:
        print(f"note: {text}")


COMMANDS.register(
    Command(
        "compare",
        "which published schedule: all of them beside the best one, on your times per stage or your model",
        configure,
        run,
        Group.FIND,
        "compare examples/plans/llama3-70b-80gb.yaml --schedules 1f1b,vpp,zbv",
    )
)
