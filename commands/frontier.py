"""`frontier`: what memory buys, as a table and a picture: best time and bound from the least memory to ample memory."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from threading import Event
from typing import Literal

from commands.catalogue import COMMANDS, Command, Exit
from commands.files import add_problem, problem_of
from commands.option_values import whole
from commands.output import complain, files_written, in_file_units, rate, table, write_json
from commands.output import time as time_text
from commands.searching import add_limits, interrupt_sets, limits_of, not_interrupted, progress_line, refuse_period
from pipesched.amounts import plain, size
from pipesched.errors import BadInput
from pipesched.metrics import measure
from pipesched.problem import Problem
from pipesched.solution import gap
from pipesched.write_file import write_whole
from plots.frontier import Known, Spot, render_frontier
from solver.staircase import Point
from solver.sweep import Frontier, frontier


def configure(parser: ArgumentParser) -> None:
    """The options of a search, and the points."""
    add_problem(parser)
    add_limits(parser)
    parser.add_argument(
        "--points",
        type=whole(2, 1000),
        default=12,
        metavar="N",
        help="capacities to solve for, within the time limit for all of them (default: 12)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="picture of time against memory, .png or .svg")


def run(args: Namespace) -> Exit:
    """Sweep, print, draw."""
    problem = problem_of(args.problem, args.objective)
    refuse_period(problem, "a frontier is")
    kind = _kind(args.output)
    found = _sweep(problem, args)
    with not_interrupted():
        files = [write_whole(Path(args.output), _picture(found, kind))] if args.output and found.points else []
    if args.json:
        write_json(_document(found, files))
    else:
        _print(found, args.points)
        files_written(files)
    if found.interrupted:
        return Exit.INTERRUPTED
    return Exit.DONE if any(point.value is not None for point in found.points) else Exit.NOT_FOUND


def _kind(output: str | None) -> Literal["png", "svg"]:
    match Path("frontier.png" if output is None else output).suffix.lower():
        case ".svg":
            return "svg"
        case ".png":
            return "png"
    raise BadInput(f"{output}: found the ending {Path(output or '').suffix!r}; a picture is written as .png or .svg")


def _sweep(problem: Problem, args: Namespace) -> Frontier:
    stop = Event()
    with interrupt_sets(stop), progress_line() as say:
        return frontier(
            problem,
            args.points,
            limits_of(args),
            lambda done, of, levels, level: say(f"point {done + 1} of {of}: memory {levels.text(level)}"),
            stop,
        )


def _print(found: Frontier, asked: int) -> None:
    problem, levels = found.problem, found.levels
    name = problem.objective.value
    unit = f"\n({problem.time_unit})" if problem.time_unit else ""
    memory = "share of each\ncapacity (%)" if levels.by_share else f"memory a device\n({problem.memory.unit})"
    columns = [(memory, True), (f"best {name}{unit}", True), (f"lower bound{unit}", True), ("gap", True)]
    columns += [(f"bubble\n({name})", True), ("slower than\nlast row", True)]
    last = found.points[-1].value if found.points else None
    title = f"{problem.name}: {size(problem)} · {name} against memory"
    table(title, columns, [_row(found, point, last) for point in found.points])
    for line in _findings(found):
        print(line)
    if found.untried and not found.interrupted:
        print(f"the time was up after {asked - found.untried} of {asked} points; a longer --time-limit brings more")
    if found.interrupted:
        complain("interrupted: these are the points found until then")


def _row(found: Frontier, point: Point, last: int | None) -> list[str]:
    problem = found.problem
    level = found.levels.number(point.level) * (100 if found.levels.by_share else 1)

    def say(ticks: int | None) -> str:
        return time_text(problem, ticks).removesuffix(problem.time_unit).strip()

    row = [plain(level), say(point.value), say(point.lower_bound)]
    if point.value is None or point.timeline is None:
        return [*row, "", "", ""]
    slower = "" if last is None else f"{100 * (point.value / last - 1):.2f} %" if last else "0.00 %"
    bubble = rate(measure(point.timeline).bubble(problem.objective))
    return [*row, f"{100 * gap(point.value, point.lower_bound):.2f} %", bubble, slower]


def _findings(found: Frontier) -> list[str]:
    """What the table means."""
    points, problem, say = found.points, found.problem, found.levels.text
    if not points:
        return []
    first, last = points[0], points[-1]
    lines = [f"no schedule fits with less than {say(found.levels.least())}"] if found.levels.least() else []
    ample = [point for point in points if point.value is not None and point.value == last.value]
    if ample and last.value is not None:
        proved = "none is faster with any memory" if last.value == last.lower_bound else (
            f"with any memory none is below {time_text(problem, last.lower_bound)}"
        )  # fmt: skip
        lines.append(f"the fastest found, {time_text(problem, last.value)}, takes {say(ample[0].level)}; {proved}")
    if first.level > found.levels.least():
        lines.append("the time did not last for the least memory")
    if found.own is not None and found.own > last.level:
        lines.append(f"the file's capacity, {say(found.own)}, is more than the fastest found takes")
    return lines


def _document(found: Frontier, files: list[Path]) -> dict[str, object]:
    """The object of `frontier --json`; times and memory in the file's units, or memory as shares of the capacities."""
    problem, levels = found.problem, found.levels
    return {
        "name": problem.name,
        "objective": problem.objective.value,
        "by_share": levels.by_share,
        "least_memory": levels.number(levels.least()),
        "memory_in_file": None if found.own is None else levels.number(found.own),
        "points": [
            {
                "memory": levels.number(point.level),
                "value": in_file_units(problem, point.value),
                "lower_bound": in_file_units(problem, point.lower_bound),
                "gap": None if point.value is None else gap(point.value, point.lower_bound),
                "certificate": {"kind": point.certificate.kind, "text": point.certificate.text},
            }
            for point in found.points
        ],
        "bounds": [
            {"memory": levels.number(level), "lower_bound": in_file_units(problem, bound)}
            for level, bound in found.bounds
        ],
        "schedules": [one._asdict() for one in _known(found)],
        "not_tried": found.untried,
        "interrupted": found.interrupted,
        "files": [str(path) for path in files],
    }


def _known(found: Frontier) -> list[Known]:
    """The published schedules that apply, wherever they lie."""
    problem, levels = found.problem, found.levels
    return [
        Known(c.name, levels.number(levels.of(c.metrics)), problem.in_units(c.metrics.value(problem.objective)))
        for c in found.candidates
        if c.metrics is not None
    ]


def _picture(found: Frontier, kind: Literal["png", "svg"]) -> bytes:
    problem, levels = found.problem, found.levels
    times = 100 if levels.by_share else 1
    spots = [
        Spot(times * levels.number(point.level), problem.in_units(point.value))
        for point in found.points
        if point.value is not None
    ]
    bounds = [(times * levels.number(level), problem.in_units(bound)) for level, bound in found.bound_steps()]
    known = [one._replace(memory=times * one.memory) for one in _known(found)]
    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    memory = "Memory, % of each device's capacity" if levels.by_share else f"Memory of a device ({problem.memory.unit})"
    name = problem.objective.value
    title = f"{problem.name}: {name} against memory\n{size(problem)}"
    own = None if found.own is None else times * levels.number(found.own)
    return render_frontier(spots, bounds, known, own, (memory, name.capitalize() + unit), title, kind)


COMMANDS.register(Command("frontier", "best time against memory, from the least that fits to ample", configure, run))
