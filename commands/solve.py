"""The command `solve`: the best schedule of a problem with its certificate, compared with published schedules."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from commands.options.search import add_limits, not_interrupted, refuse_period, search
from commands.reports import text_gantt
from commands.reports.html.origin import typed
from commands.reports.solved import robustness
from commands.reports.solved.from_state import run_from_state
from commands.reports.solved.min_memory import add_less_memory, reduce_memory
from commands.reports.solved.recommendation import recommendation
from commands.reports.solved.sensitivity import add_explain, explained
from commands.reports.solved.solve import SolveResults, show
from commands.reports.timed_files import COSTS, TimedFiles, timed_files
from commands.shared.batch_sizes import best_of_sizes, refuse_for_several
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_problem, draw, problem_sizes_of, write_schedule
from commands.shared.for_runtime import add_schedules_for
from commands.shared.not_applicable import add_why_not
from commands.shared.output import (
    files_written,
    idle_shares,
    next_step,
    note,
    write_json,
)
from commands.shared.output_folder import record_output
from commands.shared.watch import add_watch
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.atomic_write import make_folder, write_whole
from pipesched.files.schedule_file import ScheduleFile, read_schedule
from pipesched.measurement.calibration import with_measured_times
from pipesched.measurement.trace import read_measured
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.formatting import counted
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.ample_memory import why_never_limited
from pipesched.results.analysis.explanation_document import explanation_document
from pipesched.results.batch_sizes import SizeResult
from pipesched.results.comparison import OURS
from pipesched.results.solution import Solution, Status
from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.restrictions import RESTRICTIONS
from solver.construction.timing import best_times
from solver.local_search.equal_value import with_timeline
from targets.schedules import expressed, restricted

# Seconds for the causes of idle time, however short the time.
_LEAST_SECONDS = 0.5
# Options for a problem of one size of micro-batches.
_OF_ONE_SIZE = {
    "start": "--start",
    "measured": "--measured",
    "from_state": "--from-state",
    "robust": "--robust",
    "memory_within": "--memory-within, --then-memory",
    "explain": "--explain",
}


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: problem file, objective, limits, starting point, further analyses, and output.

    The start is `--start` (a schedule file), `--from-state` or `--measured` (durations). Analyses: less memory,
    `--robust`, `--explain`. `--for` is a runtime. Output: folder `-o`, `--text`, `--why-not`, `--watch`, `--json`.
    """
    add_problem(parser)
    add_watch(parser)
    add_limits(parser)
    add_less_memory(parser)
    robustness.add_robust(parser)
    add_schedules_for(parser)
    add_explain(parser)
    text_gantt.add_text(parser)
    add_why_not(parser)
    parser.add_argument(
        "--measured", metavar="TRACE", help="with the durations that `run` measured instead of the file's"
    )
    parser.add_argument(
        "--start", metavar="SCHEDULE", help="go on from this schedule file: the result is never worse than it"
    )
    parser.add_argument(
        "--from-state",
        metavar="STATE",
        help="keep the passes that have begun by this state file, order all others again",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write schedule.json, gantt.png, memory.png, report.html and a CSV for PyTorch",
    )


def run(args: Namespace) -> Exit:
    """Search the best schedule, print the results, and write the files if `-o` names a folder.

    The exit code is 0 if a schedule was found, 1 if none fits, 3 if none was found in time, 130 after Ctrl-C.
    `BadInput` for options that do not go together.
    """
    text_gantt.refuse_with_json(args)
    if args.explain_time is not None and not args.explain:
        raise BadInput("found --explain-time without --explain; allowed: with --explain, whose seconds it sets")
    if args.robust is not None and args.memory_within is not None:
        raise BadInput("found --robust with --memory-within or --then-memory; allowed: one of them")
    sizes = problem_sizes_of(args.problem, args.objective)
    if len(sizes) > 1:
        refuse_for_several(args, _OF_ONE_SIZE)
    whole = sizes[0][0]
    if args.from_state is not None:
        return run_from_state(args, whole)
    if args.measured:
        sizes = [(with_measured_times(whole, read_measured(args.measured)), None)]
    folder, text = _folder([problem for problem, _ in sizes], args.output), typed(args.problem)
    found = _find_best_size(sizes, args)
    if not args.json:
        show(found, args.why_not)
        if found.solution.timeline:
            text_gantt.show_if_wanted(found.solution.timeline, args)
    files: list[Path] = []
    try:
        late = False
        if folder and found.solution.timeline:
            with timed_files(args, found.solution.timeline, found.solution.interrupted) as timed:
                _write(timed, found, folder, args, text)
            files, late = timed.paths, timed.interrupted
        if args.output:
            with not_interrupted():
                record_output(args.output, "solve", files)
    finally:
        # What was found is told even where the disk is full.
        if args.json:
            write_json(found.solution.document() | _extras(found, args, files))
    if not args.json:
        files_written(files)
        _say_next(args, found.solution)
    return Exit.INTERRUPTED if late else _exit(found)


def _find_best_size(sizes: Sequence[tuple[Problem, int | None]], args: Namespace) -> SolveResults:
    """Search each micro-batch size in turn, with a line on stderr before each.

    Return the best result with those of all sizes.
    """

    def find(problem: Problem, own: Namespace) -> SolveResults:
        if len(sizes) > 1:
            note(f"{counted(problem.microbatches, 'micro-batch')}:")
        return _find(problem, own)

    found, results, interrupted = best_of_sizes(sizes, args, find, _result, lambda one: one.solution.interrupted)
    return replace(found, solution=replace(found.solution, interrupted=interrupted), sizes=results)


def _result(problem: Problem, sequences: int | None, found: SolveResults) -> SizeResult:
    """Return the result for a micro-batch size, in the file's unit; a period becomes the time of all micro-batches.

    `sequences` is the number of sequences of a micro-batch, None if not known.
    """
    solution = found.solution
    tick = solution.problem.tick * (problem.microbatches if problem.objective.repeats else 1)
    value = None if solution.value_ticks is None else solution.value_ticks * tick
    bound = solution.lower_bound_ticks * tick
    return SizeResult(problem.microbatches, sequences, solution.status, value, bound, solution.reason, solution.free)


def _find(whole: Problem, args: Namespace) -> SolveResults:
    """Search; then, unless interrupted, search for less memory or a smaller mean, and for why it is not faster.

    `whole` is the problem before `--for` restricts it. Raises `BadInput` where options and a period exclude each other.
    """
    problem = whole
    if args.target:
        refuse_period(problem, "--for is")
        problem = restricted(problem, args.target)
    if args.explain or args.memory_within is not None:
        refuse_period(problem, "--explain, --then-memory and --memory-within are")
    if args.robust is not None:
        refuse_period(problem, "--robust is")
    if args.start is not None:
        refuse_period(problem, "--start is")
    start = None if args.start is None else read_schedule(args.start).timeline
    solution = fastest = search(problem, args, start)
    memory, explanation = None, None
    if args.memory_within is not None and fastest.timeline is not None and not fastest.interrupted:
        solution, memory = reduce_memory(fastest, args)
    if args.explain and fastest.timeline is not None and not solution.interrupted:
        explanation = explained(fastest, args)
    if args.robust is not None and not solution.interrupted:
        solution = robustness.searched(solution, args)
    if args.target:
        solution = expressed(solution, args.target, whole)
    ample = why_never_limited(whole)
    if ample is not None:
        solution = replace(solution, notes=(*solution.notes, ample))
    noise, robust = robustness.of(solution, args), args.robust is not None
    # What was asked for besides, less memory or a runtime's own orders, is recommended as it is.
    best = None if memory or args.target else recommendation(solution, noise, robust)
    if best and best.name != OURS and not robust:
        # What is written is what is recommended.
        rival = next(one.timeline for one in solution.candidates if one.name == best.name)
        assert rival is not None
        solution = with_timeline(solution, best_times(solution.problem, rival.schedule))
        noise = robustness.of(solution, args)
    idle = None if solution.timeline is None else idle_shares(solution.timeline, _seconds_for_idle(solution, args))
    return SolveResults(solution, memory, explanation, noise, robust, best, idle)


def _seconds_for_idle(solution: Solution, args: Namespace) -> float:
    """Return the seconds left of the time limit for explaining idle time, at least half a second.

    After Ctrl-C only that half second.
    """
    now = time.monotonic()
    left = 0.0 if solution.interrupted else getattr(args, "began", now) + args.time_limit - now
    return max(_LEAST_SECONDS, left)


def _folder(problems: Sequence[Problem], output: str | None) -> Path | None:
    """Create and return the output folder.

    None without one, or if all problems are infeasible, with nothing to write. `BadInput` if something else than a
    folder is there.
    """
    if output is None or all(map(why_infeasible, problems)):
        return None
    if not output or (Path(output).exists() and not Path(output).is_dir()):
        raise BadInput(
            f"--output: found {output!r}, which is no directory; allowed: a directory, made if it is missing"
        )
    return make_folder(output)


def _say_next(args: Namespace, solution: Solution) -> None:
    """Print the same command with a folder for its files, where it had none."""
    if not args.output and solution.timeline is not None and not solution.interrupted:
        next_step([*args.words, "-o", "results"], "writes the schedule, pictures and a report")


def _exit(found: SolveResults) -> Exit:
    solution, explanation = found.solution, found.explanation
    if solution.interrupted or (explanation is not None and explanation.interrupted):
        return Exit.INTERRUPTED
    codes = {Status.INFEASIBLE: Exit.NO, Status.UNKNOWN: Exit.NOT_FOUND}
    return codes.get(solution.status, Exit.DONE)


def _write(timed: TimedFiles, found: SolveResults, folder: Path, args: Namespace, text: str | None) -> None:
    """Write all files of a solve, and those for the runtime of `--for`.

    What the runtime cannot express is noted and left out. `text` is the problem file as typed, for the report.
    """
    solution, target = found.solution, args.target
    timeline = solution.timeline
    assert timeline is not None

    def report() -> list[Path]:
        from commands.reports.html.solve import solve_report  # with Matplotlib: a second

        return [write_whole(folder / "report.html", solve_report(found, args, text))]

    try:
        timed.must(lambda: [write_schedule(folder / "schedule.json", ScheduleFile.of(solution, timeline))])
    except BadInput as error:
        note(f"note: {error}")
    timed.may("gantt.png", lambda: [draw(timeline, "gantt", folder / "gantt.png", solution.metrics)], COSTS.gantt)
    timed.may("memory.png", lambda: [draw(timeline, "memory", folder / "memory.png", solution.metrics)], COSTS.memory)
    timed.may("report.html", report, COSTS.report)
    what = f"files for {target}" if target else "CSV for PyTorch"
    timed.may(f"the {what}", partial(_exported, timeline, target, what, folder), 0 if target else COSTS.torch_csv)


def _exported(timeline: Timeline, target: str | None, what: str, folder: Path) -> list[Path]:
    exporter = EXPORTERS[RESTRICTIONS[target].exporter if target else "torch-csv"]
    try:
        texts = exporter.export(timeline)
    except BadInput as error:
        note(f"note: no {what}: {error}")
        return []
    for warning in exporter.warnings(timeline):
        note(f"note on the {what}: {warning}")
    return [write_whole(folder / f"schedule{suffix}", text) for suffix, text in texts.items()]


def _extras(found: SolveResults, args: Namespace, files: list[Path]) -> dict[str, object]:
    """Return the JSON fields that the command adds: schedules not tried, files, further answers.

    `not_tried`, `files`, `recommended`, `idle_causes` and `under_noise` are always there, the last three null if not
    known. `least_memory` and `explanation` are there with the option that asks for them, null if not found; `sizes` is
    there for several micro-batch sizes.
    """
    solution, memory, explanation = found.solution, found.memory, found.explanation
    extras: dict[str, object] = {
        "not_tried": sorted({*HEURISTICS.names()} - {one.name for one in solution.candidates}),
        "files": [str(path) for path in files],
        "recommended": None if found.recommended is None else found.recommended._asdict(),
        "idle_causes": found.idle,
        "under_noise": None if found.noise is None else found.noise.document(),
    }
    if args.memory_within is not None:
        extras["least_memory"] = None if memory is None else memory.document()
    if found.sizes.results:
        extras["sizes"] = found.sizes.document()
    if args.explain:
        extras["explanation"] = None if explanation is None else explanation_document(explanation)
    return extras


COMMANDS.register(
    Command(
        "solve",
        "for times per stage: the best order of passes, with proof",
        configure,
        run,
        Group.FIND,
        "solve examples/gpt-1.5b-pp8.yaml -o results",
    )
)
