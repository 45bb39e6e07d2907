"""Reading the files a command is given, in whichever form, and drawing the ones it writes."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from commands.shared.output import idle_shown, note, percent, times_shown
from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.files.problem_file import read_problem, read_problem_sizes, with_objective
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.timeline import Timeline
from plots.drawing.zoom import Window


def add_problem(parser: ArgumentParser) -> None:
    """The arguments shared by the commands that read a problem."""
    parser.add_argument("problem", metavar="PROBLEM", help="problem file, YAML or JSON")
    add_objective(parser)
    add_json(parser)


def add_objective(parser: ArgumentParser) -> None:
    """`--objective`, which goes before the file's."""
    names = [objective.value for objective in Objective]
    parser.add_argument("--objective", choices=names, help="what to minimise (default: as the problem file says)")


def add_json(parser: ArgumentParser) -> None:
    """`--json`, which every command has."""
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output, nothing else")


def problem_of(path: str, objective: str | None) -> Problem:
    """The problem of a file, with the objective asked for."""
    return _of(read_problem(path), path, objective)


def problem_sizes_of(path: str, objective: str | None) -> list[tuple[Problem, int | None]]:
    """The problem of each size of a micro-batch that the file lists, with its sequences."""
    return [(_of(problem, path, objective), sequences) for problem, sequences in read_problem_sizes(path)]


def _of(problem: Problem, path: str, objective: str | None) -> Problem:
    for text in problem.notes:
        note(f"note: {path}: {text}")
    return with_objective(problem, Objective(objective)) if objective else problem


def caption(metrics: Metrics, problem: Problem) -> str:
    """The line under a picture's title: no more than the metrics tell, which may not know the period."""
    rates = metrics.bubbles
    times = [f"{time} {amount(problem, metrics.value_ticks(time))}" for time in times_shown(problem) if time in rates]
    shares = [f"{name} {percent(share)}" for name, share in idle_shown(problem, metrics) if share is not None]
    return " · ".join([", ".join(times), *shares])


def picture_kind(path: Path, *others: str) -> Literal["png", "svg", "pdf"]:
    """The picture format that a file's ending says; `others` are the endings that the command knows besides."""
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
    """Write a picture of a timeline; the file's ending says the format, `others` as for `picture_kind`.

    `metrics`, where more is known than the timeline tells; `window`, in ticks, where not all of it is drawn.
    """
    from plots.catalogue import PLOTS
    from plots.render import render_plot

    problem = timeline.problem
    title = f"{problem.name} · {timeline.schedule.name}\n{caption(metrics or measure(timeline), problem)}"
    return write_whole(path, render_plot(timeline, PLOTS[plot], picture_kind(path, *others), title, window))


def write_schedule(path: Path, file: ScheduleFile) -> Path:
    """Write a schedule file; `BadInput` where no problem file can say what the problem is."""
    try:
        text = to_text(file)
    except ValueError as why:
        raise BadInput(f"no {path.name} can be written: {why}") from None
    return write_whole(path, text)
