"""Arguments for input files, reading them in any supported form, and drawing pictures."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from commands.shared.output import idle_shown, note, percent, times_shown
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.problem_file import problem_in, read_document, read_problem_sizes, with_objective
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.problem.formatting import amount
from pipesched.problem.objective import OBJECTIVES, of_problems
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.timeline import Timeline
from plots.drawing.zoom import Window


def add_problem(parser: ArgumentParser) -> None:
    """Add the arguments of commands that read a problem: file, objective, `--json`."""
    parser.add_argument("problem", metavar="PROBLEM", help="problem file, YAML or JSON")
    add_objective(parser)
    add_json(parser)


def add_objective(parser: ArgumentParser) -> None:
    """Add `--objective`, a name of `of_problems()` that overrides the file's objective; None where not given."""
    names = [objective.name for objective in of_problems()]
    parser.add_argument(
        "--objective",
        choices=names,
        help="what to minimise (default: as the problem file says): makespan, to the end of the last pass; span, the "
        "longest time from a device's first pass to the end of its last; period, the time between two micro-batches in "
        "the steady state; iteration, the makespan with reductions of gradients and optimizer steps; free_memory, the "
        "most memory left on the device with the least, and of those schedules the least time",
    )


def add_json(parser: ArgumentParser) -> None:
    """Add `--json`, an option of every command: False if not given."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")


def problem_of(path: str, objective: str | None) -> Problem:
    """Read a problem file, print its notes, and return the problem, with the objective replaced if one is given.

    `BadInput` lists every mistake of the file, or says that it does not allow the objective.
    """
    return problem_in_document(read_document(path), path, objective)


def problem_in_document(document: object, path: str, objective: str | None) -> Problem:
    """Return the problem of a file that has been read, of which `document` is the content; print its notes.

    `objective` replaces the file's, if given. `BadInput` lists every mistake of the file, or says that it does not
    allow the objective.
    """
    return _of(problem_in(document, path), path, objective)


def problem_sizes_of(path: str, objective: str | None) -> list[tuple[Problem, int | None]]:
    """Return the problem of each micro-batch size that a file lists, in its order; one for a file without a list.

    Each has the number of sequences in a micro-batch, None if not known. Prints the notes of each problem. `objective`
    replaces the file's, if given. `BadInput` lists every mistake of the file, or says that it does not allow the
    objective.
    """
    return [(_of(problem, path, objective), sequences) for problem, sequences in read_problem_sizes(path)]


def _of(problem: Problem, path: str, objective: str | None) -> Problem:
    for text in problem.notes:
        note(f"note: {path}: {text}")
    return with_objective(problem, OBJECTIVES[objective]) if objective else problem


def caption(metrics: Metrics, problem: Problem) -> str:
    """Return the line under a picture's title: the times and idle shares that the metrics contain."""
    shown = [time for time in times_shown(problem) if time.name in metrics.bubbles]
    times = [f"{time.name} {amount(problem, metrics.value_ticks(time))}" for time in shown]
    shares = [f"{name} {percent(share)}" for name, share in idle_shown(problem, metrics) if share is not None]
    return " · ".join([", ".join(times), *shares])


def picture_kind(path: Path, *others: str) -> Literal["png", "svg", "pdf"]:
    """Return the picture format given by a path's ending; `BadInput` for any other ending.

    `others` are further endings that the command accepts and has handled before: the message names them, too.
    """
    match path.suffix.lower():
        case ".png":
            return "png"
        case ".svg":
            return "svg"
        case ".pdf":
            return "pdf"
    *most, last = ".png", ".svg", ".pdf", *others
    raise BadInput(f"{path}: found the ending {path.suffix!r}; allowed: {', '.join(most)} or {last}")


def draw(
    timeline: Timeline,
    plot: str,
    path: Path,
    metrics: Metrics | None = None,
    others: Sequence[str] = (),
    window: Window | None = None,
) -> Path:
    """Write a picture of a timeline to `path`, in the format of the path's ending, and return the path.

    `plot` is the name of the kind of picture. `metrics` are given where more is known than the timeline shows.
    `window`, in ticks, draws a part of it. `others` are the endings, other than those of pictures, that the command
    accepts, for the message of the `BadInput` for an unknown ending.
    """
    from plots.catalogue import PLOTS
    from plots.render import render_plot

    problem = timeline.problem
    title = f"{problem.name} · {timeline.schedule.name}\n{caption(metrics or measure(timeline), problem)}"
    return write_whole(path, render_plot(timeline, PLOTS[plot], picture_kind(path, *others), title, window))


def write_schedule(path: Path, file: ScheduleFile) -> Path:
    """Write a schedule file whole and return its path; `BadInput` if no problem file can express its problem."""
    try:
        text = to_text(file)
    except ValueError as why:
        raise BadInput(f"no {path.name} can be written: {why}") from None
    return write_whole(path, text)
