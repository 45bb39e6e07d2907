"""`solve --then-memory` and `--memory-within`: options, progress, and what was found."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from fractions import Fraction
from threading import Event

from commands.option_values import share
from commands.output import in_file_units
from commands.output import time as time_text
from commands.searching import interrupt_sets, limits_of, progress_line
from pipesched.amounts import plain
from pipesched.problem import Problem
from pipesched.solution import Solution
from solver.least_memory import LeastMemory, least_memory
from solver.memory_levels import MemoryLevels


def add_less_memory(parser: ArgumentParser) -> None:
    """The options; either sets `memory_within`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--then-memory",
        dest="memory_within",
        action="store_const",
        const=Fraction(0),
        help="of the schedules as good as the best found, one of least peak memory (up to the time limit again)",
    )
    group.add_argument(
        "--memory-within",
        type=share,
        metavar="SHARE",
        help="the least peak memory within this share of the best value found, as 2%% or 0.02 (up to the time limit "
        "again)",
    )


def reduce_memory(solution: Solution, args: Namespace) -> tuple[Solution, LeastMemory]:
    """Search for less memory, showing progress; Ctrl-C keeps what was found."""
    stop = Event()
    with interrupt_sets(stop), progress_line() as say:

        def hear(levels: MemoryLevels, level: Fraction, proved: Fraction, asked: Fraction) -> None:
            say(f"memory: found {levels.text(level)}, at least {levels.text(proved)}; is {levels.text(asked)} enough?")

        return least_memory(solution, args.memory_within, limits_of(args), hear, stop)


def sentences(problem: Problem, found: LeastMemory) -> list[str]:
    """What came out, for people."""
    levels, name = found.levels, problem.objective.value
    near = f"within {plain(float(100 * found.within))} % of the best {name}" if found.within else f"at the best {name}"
    most = "fullest device" if levels.by_share else "device that takes most"
    before = "as before" if found.level == found.before else f"{levels.text(found.before)} before"
    first = (
        f"least memory {near}, at most {time_text(problem, found.allowed)}: the {most} takes "
        f"{levels.text(found.level)}, {before}"
    )
    if not found.lower_bound:  # less than nothing needs no proof
        return [first if found.proved else f"{first}; whether less is enough is open"]
    rest = "less is not enough" if found.proved else f"less than {levels.text(found.lower_bound)} is not enough"
    return [f"{first}; {rest}", f"why {rest}: {found.why}"]


def document(problem: Problem, found: LeastMemory) -> dict[str, object]:
    """The object under `least_memory` of `solve --json`; memory in the file's unit, or as shares of the capacities."""
    levels = found.levels
    return {
        "within": float(found.within),
        "best_value": in_file_units(problem, found.best),
        "allowed_value": in_file_units(problem, found.allowed),
        "by_share": levels.by_share,
        "before": levels.number(found.before),
        "value": levels.number(found.level),
        "lower_bound": levels.number(found.lower_bound),
        "proved": found.proved,
        "text": found.why,
    }
