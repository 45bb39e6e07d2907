"""Options of `compare` that choose schedules: published ones by name, and schedules of other programs from files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from commands.shared.output import note
from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.errors import BadInput, Deadlock, Disagreement
from pipesched.files.file_names import as_text
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from runtime.importers.catalogue import IMPORTERS, import_schedule
from solver.published import simulated_and_validated


def add_schedules(parser: ArgumentParser) -> None:
    """Add `--schedules`, names with commas between them (default None), and `--with`, files (`others`, default [])."""
    parser.add_argument("--schedules", metavar="A,B", help="only these schedules (default: all)")
    parser.add_argument(
        "--with",
        dest="others",
        metavar="FILE",
        nargs="+",
        default=[],
        help="also these schedules of other programs: " + "; ".join(one.description for one in IMPORTERS),
    )


def published(listed: str | None) -> list[str] | None:
    """Return the names of published schedules in a comma-separated list, once each; None if `listed` is None.

    A further name of a schedule is replaced by its own, which a note says. `BadInput` has a line for each unknown name.
    """
    if listed is None:
        return None
    names: list[str] = []
    mistakes: list[str] = []
    for word in listed.split(","):
        name = word.strip()
        try:
            found = schedule_named(name).name
            names.append(found)
            if name in HEURISTICS.other_names(found):
                note(f"note: {name} is another name of {found}, by which it is shown")
        except BadInput as error:
            mistakes += error.mistakes
    if mistakes:
        raise BadInput(*mistakes)
    return list(dict.fromkeys(names))


def imported(problem: Problem, path: str) -> Candidate:
    """Return another program's schedule, simulated and validated; it may exceed the memory (`fits` is False then).

    `BadInput` if the file cannot be read, or its order deadlocks or breaks a rule. If it only breaks the required order
    of micro-batches, the result has that reason in place of a timeline.
    """
    try:
        return simulated_and_validated(problem, import_schedule(path, problem), as_text(Path(path).name))
    except (Deadlock, Disagreement) as wrong:
        raise BadInput(f"{path}: {wrong}") from None
