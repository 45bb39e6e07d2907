"""`solve`: the best schedule of a problem with its certificate, set against the published ones, written and drawn."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path

from commands import explaining, less_memory, rows
from commands.catalogue import COMMANDS, Command, Exit
from commands.explaining import add_explain, explained
from commands.files import add_problem, draw, problem_of, write_schedule
from commands.less_memory import add_less_memory, reduce_memory
from commands.output import complain, files_written, in_file_units, memory_amounts, note, rate, write_json
from commands.output import time as time_text
from commands.report import report
from commands.searching import add_limits, not_interrupted, refuse_period, search
from pipesched.amounts import plain
from pipesched.errors import BadInput
from pipesched.feasibility import why_infeasible
from pipesched.measured import read_measured
from pipesched.measured_times import with_measured_times
from pipesched.problem import Problem
from pipesched.schedule_file import ScheduleFile
from pipesched.solution import Solution, Status
from pipesched.write_file import make_folder, write_whole
from runtime.catalogue import EXPORTERS
from solver.explain import Explanation
from solver.least_memory import LeastMemory


def configure(parser: ArgumentParser) -> None:
    """The contract's options."""
    add_problem(parser)
    add_limits(parser)
    add_less_memory(parser)
    add_explain(parser)
    parser.add_argument(
        "--measured", metavar="TRACE", help="with the durations that `run` measured instead of the file's"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write schedule.json, gantt.png, memory.png, report.md and a CSV for PyTorch",
    )


def run(args: Namespace) -> Exit:
    """Search, print, write."""
    if args.explain_time is not None and not args.explain:
        raise BadInput("found --explain-time without --explain; allowed: with --explain, whose seconds it sets")
    problem = problem_of(args.problem, args.objective)
    if args.measured:
        problem = with_measured_times(problem, read_measured(args.measured))
    folder = _folder(problem, args.output)
    found = _find(problem, args)
    if not args.json:
        _print(found)
    with not_interrupted():
        files = _write(found, folder) if folder and found.solution.timeline else []
    if args.json:
        write_json(_document(found.solution, files) | _extras(found, args))
    else:
        files_written(files)
    return _exit(found)


@dataclass(frozen=True)
class _Found:
    """All that one run of the command brings: the solution, and what else was asked for."""

    solution: Solution
    memory: LeastMemory | None = None
    explanation: Explanation | None = None


def _find(problem: Problem, args: Namespace) -> _Found:
    """Search; then, unless interrupted, for less memory, and for why the fastest schedule found is not faster."""
    if args.explain or args.memory_within is not None:
        refuse_period(problem, "--explain, --then-memory and --memory-within are")
    solution = fastest = search(problem, args)
    memory, explanation = None, None
    if args.memory_within is not None and fastest.timeline is not None and not fastest.interrupted:
        solution, memory = reduce_memory(fastest, args)
    if args.explain and fastest.timeline is not None and not solution.interrupted:
        explanation = explained(fastest, args)
    return _Found(solution, memory, explanation)


def _folder(problem: Problem, output: str | None) -> Path | None:
    """Where to write; made before the search, unless the answer will be that there is nothing to write."""
    if output is None or why_infeasible(problem):
        return None
    if not output or (Path(output).exists() and not Path(output).is_dir()):
        raise BadInput(
            f"--output: found {output!r}, which is no directory; allowed: a directory, made if it is missing"
        )
    return make_folder(output)


def _exit(found: _Found) -> Exit:
    solution, explanation = found.solution, found.explanation
    if solution.interrupted or (explanation is not None and explanation.interrupted):
        return Exit.INTERRUPTED
    codes = {Status.INFEASIBLE: Exit.NO, Status.UNKNOWN: Exit.NOT_FOUND}
    return codes.get(solution.status, Exit.DONE)


def _write(found: _Found, folder: Path) -> list[Path]:
    """All the files of a solve; what PyTorch's format cannot express is said and left out."""
    solution = found.solution
    timeline = solution.timeline
    assert timeline is not None
    file = ScheduleFile(timeline, solution.lower_bound, solution.certificate, solution.value)
    written = [
        write_schedule(folder / "schedule.json", file),
        draw(timeline, "gantt", folder / "gantt.png", solution.metrics),
        draw(timeline, "memory", folder / "memory.png", solution.metrics),
        write_whole(folder / "report.md", report(solution, found.memory, found.explanation)),
    ]
    try:
        texts = EXPORTERS["torch-csv"].export(timeline)
    except BadInput as error:
        note(f"note: no CSV for PyTorch: {error}")
        return written
    for warning in EXPORTERS["torch-csv"].warnings(timeline):
        note(f"note on the CSV for PyTorch: {warning}")
    return written + [write_whole(folder / f"schedule{suffix}", text) for suffix, text in texts.items()]


def _document(solution: Solution, files: list[Path]) -> dict[str, object]:
    """The object of `solve --json`."""
    problem, metrics, best = solution.problem, solution.metrics, solution.best_candidate
    certificate = solution.certificate
    document: dict[str, object] = {
        "name": problem.name,
        "objective": problem.objective.value,
        "status": solution.status.value,
        "value": in_file_units(problem, solution.value),
        "lower_bound": in_file_units(problem, solution.lower_bound),
        "gap": solution.gap,
        "makespan": in_file_units(problem, metrics.makespan) if metrics else None,
        "span": in_file_units(problem, metrics.span) if metrics else None,
        "period": in_file_units(problem, metrics.period) if metrics else None,
        "bubble": metrics.bubbles if metrics else None,
        "idle_ratio": metrics.idle_ratio if metrics else None,
        "peak_memory": memory_amounts(problem, metrics) if metrics else None,
        "memory_capacity": _capacity(problem),
        "certificate": {"kind": certificate.kind, "text": certificate.text} if certificate else None,
        "best_heuristic": None,
        "wall_seconds": round(solution.wall_seconds, 3),
        "files": [str(path) for path in files],
    }
    if best is not None and best.metrics is not None:
        value = in_file_units(problem, best.metrics.value(problem.objective))
        document["best_heuristic"] = {"name": best.name, "value": value}
    if solution.reason:
        document["reason"] = solution.reason
    return document


def _extras(found: _Found, args: Namespace) -> dict[str, object]:
    """The keys of what was asked for besides; null where there is no schedule to speak of."""
    solution, memory, explanation = found.solution, found.memory, found.explanation
    extras: dict[str, object] = {}
    if args.memory_within is not None:
        extras["least_memory"] = None if memory is None else less_memory.document(solution.problem, memory)
    if args.explain:
        extras["explanation"] = None if explanation is None else explaining.document(solution, explanation)
    return extras


def _capacity(problem: Problem) -> list[float | None]:
    return [None if c is None else float(c * problem.memory.resolution) for c in problem.memory.capacity]


def _print(found: _Found) -> None:
    solution = found.solution
    problem = solution.problem
    if solution.status is Status.INFEASIBLE:
        complain(f"infeasible: {solution.reason}")
        return
    rows.show(problem, rows.with_solution(solution), solution.lower_bound, reasons=False)
    if solution.metrics is None:
        complain("no schedule found in the time given")
        return
    value = time_text(problem, solution.value)
    objective = problem.objective
    if solution.status is Status.OPTIMAL:
        bubble = rate(solution.metrics.bubble(objective))
        print(f"optimal: {objective.value} {value}, bubble {bubble}; no schedule is better")
    elif found.memory and found.memory.best != solution.value:
        best, bound = time_text(problem, found.memory.best), time_text(problem, solution.lower_bound)
        print(f"taken for its memory: {objective.value} {value}; best found {best}, and none is below {bound}")
    else:
        bound = time_text(problem, solution.lower_bound)
        apart = f"{100 * (solution.gap or 0):.2f} %"
        print(f"best found: {objective.value} {value}; none is below {bound}: a gap of {apart}")
    peaks = ", ".join(map(plain, memory_amounts(problem, solution.metrics)))
    print(f"peak memory of each device ({problem.memory.unit}): {peaks}")
    if solution.certificate:
        print(f"why none is below the bound ({solution.certificate.kind}): {solution.certificate.text}")
    for text in solution.notes:
        print(f"note: {text}")
    if found.memory:
        print("\n".join(less_memory.sentences(problem, found.memory)))
    if found.explanation:
        explaining.show(solution, found.explanation)
    if solution.interrupted:
        print("interrupted: this is the best schedule found until then")


COMMANDS.register(Command("solve", "the best schedule for a problem, with proof", configure, run))
