"""Reading the files a command is given, in whichever form, and drawing the ones it writes."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Literal

from commands.output import bubbles_shown, times_shown
from pipesched.amounts import amount
from pipesched.errors import BadInput
from pipesched.metrics import Metrics, measure
from pipesched.problem import Objective, Problem
from pipesched.problem_file import read_problem, with_objective
from pipesched.schedule_file import ScheduleFile, to_text
from pipesched.timeline import Timeline
from pipesched.write_file import write_whole
from plots.catalogue import PLOTS
from plots.picture import render


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
    problem = read_problem(path)
    return with_objective(problem, Objective(objective)) if objective else problem


def caption(metrics: Metrics, problem: Problem) -> str:
    """The line under a picture's title: no more than the metrics tell, which may not know the period."""
    rates = metrics.bubbles
    times = [f"{time} {amount(problem, metrics.value(time))}" for time in times_shown(problem) if time in rates]
    bubbles = [f"{rates[of]:.4f} of {of}" for of in bubbles_shown(problem) if of in rates]
    return ", ".join(times) + (f" · bubble {', '.join(bubbles)}" if bubbles else "")


def draw(timeline: Timeline, plot: str, path: Path, metrics: Metrics | None = None) -> Path:
    """Write a picture of a timeline; the file's ending says the format. `metrics`, where more is known than that."""
    problem = timeline.problem
    title = f"{problem.name} · {timeline.schedule.name}\n{caption(metrics or measure(timeline), problem)}"
    kind: Literal["png", "svg"]
    match path.suffix.lower():
        case ".png":
            kind = "png"
        case ".svg":
            kind = "svg"
        case _:
            raise BadInput(f"{path}: found the ending {path.suffix!r}; a picture is written as .png or .svg")
    return write_whole(path, render(timeline, PLOTS[plot].draw, kind, title))


def write_schedule(path: Path, file: ScheduleFile) -> Path:
    """Write a schedule file."""
    return write_whole(path, to_text(file))
