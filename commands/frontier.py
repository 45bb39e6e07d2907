"""The command `frontier`: best time and bound against memory capacity, as a table and a picture."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from fractions import Fraction
from pathlib import Path

from commands.options.search import (
    add_limits,
    interrupt_sets,
    limits_of,
    not_interrupted,
    progress_line,
    refuse_period,
)
from commands.options.values import span_of, whole
from commands.shared.catalogue import COMMANDS, Command, Exit, Group
from commands.shared.file_arguments import add_problem, picture_kind, problem_of
from commands.shared.output import complain, files_written, idle_shown, percent, write_json
from commands.shared.tables import Column, table
from commands.shared.watch import add_watch, stop_event
from pipesched.errors import BadInput
from pipesched.files.atomic_write import refuse_unwritable, write_whole
from pipesched.problem.formatting import plain, size, with_unit
from pipesched.problem.problem import Problem
from pipesched.results.analysis.frontier import Frontier, Point
from pipesched.schedule.metrics import BUBBLE, IDLE, measure
from plots.frontier import render_frontier
from solver.analysis.memory_levels import MemoryLevels
from solver.analysis.pareto_sweep import FLAT, frontier


def configure(parser: ArgumentParser) -> None:
    """Add the arguments: problem file, objective, limits, `--points`, `--memory`, picture, `--watch`, and `--json`.

    `--points` is the number of capacities to solve for. `--memory`, typed as `A..B`, is their range as two numbers;
    None where not given.
    """
    add_problem(parser)
    add_watch(parser)
    add_limits(parser)
    parser.add_argument(
        "--points",
        type=whole(2, 1000),
        default=12,
        metavar="N",
        help="capacities to solve for, within the time limit for all of them (default: 12)",
    )
    parser.add_argument(
        "--memory",
        type=span_of,
        metavar="A..B",
        help="only this range of memory a device, in the file's unit, as 16..48 (of each device's capacity in %% where "
        "capacities differ); without it from the least that any schedule needs to all that the fastest takes",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="picture of time against memory, .png, .svg or .pdf")


def run(args: Namespace) -> Exit:
    """Find best values at up to `--points` memory capacities, print the table, and with `-o` draw the picture.

    The capacities go from the least that any schedule needs to what the fastest takes, or are in the range `--memory`;
    the values between two of them are not searched. With `--json` an object is printed in place of the table. The exit
    code is `NOT_FOUND` (3) if no schedule was found at any capacity, `INTERRUPTED` after Ctrl-C, else `DONE`.
    `BadInput` for the objectives period and free memory, and for a picture that cannot be written.
    """
    problem = problem_of(args.problem, args.objective)
    refuse_period(problem, "a frontier is")
    kind = picture_kind(Path(args.output or "frontier.png"))
    if args.output:
        refuse_unwritable(args.output)
    found = _sweep(problem, args)
    with not_interrupted():
        files = [write_whole(Path(args.output), render_frontier(found, kind))] if args.output and found.points else []
    if args.json:
        write_json(found.document() | {"files": [str(path) for path in files]})
    else:
        _print(found, args.points)
        files_written(files)
    if found.interrupted:
        return Exit.INTERRUPTED
    return Exit.DONE if any(point.value is not None for point in found.points) else Exit.NOT_FOUND


def _sweep(problem: Problem, args: Namespace) -> Frontier:
    stop = stop_event(args)
    within = None if args.memory is None else _levels(problem, args.memory)
    with interrupt_sets(stop), progress_line() as say:
        return frontier(
            problem,
            args.points,
            limits_of(args),
            lambda done, of, scale, level: say(
                f"point {min(done + 1, of)} of at most {of}: memory {scale.text(level)}"
            ),
            stop,
            within,
        )


def _levels(problem: Problem, asked: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Return a range (`asked`: from, to), in the file's unit or in per cent, as memory levels.

    `BadInput` where no schedule fits it. A level is an amount of memory of each device, or where capacities differ a
    share of each.
    """
    levels = MemoryLevels(problem)
    scale = levels.scale
    low, high = (number / 100 if scale.by_share else number for number in asked)
    if high < levels.least():
        raise BadInput(
            f"--memory: found {plain(float(asked[0]))}..{plain(float(asked[1]))}; allowed: a range that reaches "
            f"{scale.text(levels.least())}, with less of which no schedule fits"
        )
    return low, high


def _print(found: Frontier, asked: int) -> None:
    problem, scale = found.problem, found.scale
    name = problem.objective.name
    unit = f"\n({problem.time_unit})" if problem.time_unit else ""
    amount = "activation memory" if any(problem.static) else "memory"
    memory = "share of each\ncapacity (%)" if scale.by_share else f"{amount} a device\n({problem.memory_unit})"
    columns = [Column(memory, True), Column(f"best {name}{unit}", True), Column(f"lower bound{unit}", True)]
    columns += [Column("gap to bound", True), Column(IDLE, True, 2), Column(BUBBLE, True, 3)]
    columns += [Column("slower than\nlast row", True, 1)]
    last = found.points[-1].value if found.points else None
    title = f"{problem.name}: {size(problem)} · {name} against memory"
    table(title, columns, [_row(found, point, last) for point in found.points])
    for line in _findings(found):
        print(line)
    if found.untried and not found.interrupted:
        print(f"the time was up after {asked - found.untried} of {asked} points; a longer --time-limit brings more")
    if found.not_needed:
        print(
            f"solved at {asked - found.not_needed} of at most {asked} capacities: between these the best value found "
            f"is constant, or nearly so (within {plain(100 * FLAT)} % of its range)"
        )
    for text in found.notes:
        print(f"note: {text}")
    if found.interrupted:
        complain("interrupted: these are the points found until then")


def _row(found: Frontier, point: Point, last: Fraction | None) -> list[str]:
    level = float(100 * point.level if found.scale.by_share else point.level)
    row = [plain(level), "" if point.value is None else plain(float(point.value)), plain(float(point.lower_bound))]
    if point.value is None or point.timeline is None:
        return [*row, "", "", "", ""]
    slower = "" if last is None else percent(float(point.value / last - 1) if last else 0.0)
    shares = (percent(share) for _, share in idle_shown(point.timeline.problem, measure(point.timeline)))
    return [*row, percent(point.gap), *shares, slower]


def _findings(found: Frontier) -> list[str]:
    """Return sentences on the frontier's table: the least memory, and the memory of the fastest schedule found.

    Empty if there are no points.
    """
    points, problem, say = found.points, found.problem, found.scale.text
    if not points:
        return []
    first, last = points[0], points[-1]
    lines = [f"no schedule fits with less than {say(found.least)}"] if found.least else []
    ample = [point for point in points if point.value is not None and point.value == last.value]
    if ample and last.value is not None and found.lower_bound is not None:
        with_ = "with any memory" if found.within is None else f"with up to {say(found.within[1])}"
        proved = f"none is faster {with_}" if last.value == found.lower_bound else (
            f"{with_} none is below {with_unit(found.lower_bound, problem.time_unit)}"
        )  # fmt: skip
        fastest = with_unit(last.value, problem.time_unit)
        lines.append(f"the fastest found, {fastest}, takes {say(ample[0].level)}; {proved}")
    if first.level > found.least and found.within is None:
        lines.append("time limit reached before the least memory was found")
    if found.own is not None and found.own > last.level and found.within is None:
        lines.append(f"the file's capacity, {say(found.own)}, is more than the fastest found takes")
    return lines


COMMANDS.register(
    Command(
        "frontier",
        "what memory is worth: the best time from the least memory that fits to ample",
        configure,
        run,
        Group.ASK,
        "frontier examples/memory-frontier.yaml -o frontier.png",
    )
)
