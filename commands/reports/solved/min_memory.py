"""`solve --then-memory` and `--memory-within`: options, progress, and results of the search for less memory."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from fractions import Fraction

from commands.options.search import interrupt_sets, limits_of, progress_line
from commands.options.values import share
from commands.shared.output import time as time_text
from commands.shared.watch import stop_event
from pipesched.problem.formatting import plain
from pipesched.results.analysis.least_memory import LeastMemory
from pipesched.results.analysis.memory_scale import MemoryScale
from pipesched.results.solution import Solution
from solver.analysis.min_memory import least_memory


def add_less_memory(parser: ArgumentParser) -> None:
    """Add `--then-memory` and `--memory-within`, which exclude each other and set `memory_within`.

    That is the share by which the value may exceed the best, 0 for `--then-memory`; None without the two.
    """
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
    """Search for less memory and show progress; return the solution that needs it, and what is proved of it.

    Ctrl-C keeps what was found.
    """
    stop = stop_event(args)
    with interrupt_sets(stop), progress_line() as say:

        def on_progress(scale: MemoryScale, level: Fraction, proved: Fraction, asked: Fraction) -> None:
            say(f"memory: found {scale.text(level)}, at least {scale.text(proved)}; is {scale.text(asked)} enough?")

        return least_memory(solution, args.memory_within, limits_of(args), on_progress, stop)


def sentences(found: LeastMemory) -> list[str]:
    """Return sentences on the least memory found, and on the proof that less is not enough."""
    scale, problem = found.scale, found.scale.problem
    name = problem.objective.name
    near = f"within {plain(float(100 * found.within))} % of the best {name}" if found.within else f"at the best {name}"
    most = "fullest device" if scale.by_share else "device that takes most"
    before = "as before" if found.level == found.before else f"{scale.text(found.before)} before"
    first = (
        f"least memory {near}, at most {time_text(problem, found.allowed)}: the {most} takes "
        f"{scale.text(found.level)}, {before}"
    )
    if not found.lower_bound:  # less than nothing needs no proof
        return [first if found.proved else f"{first}; whether less is enough is open"]
    claim = "less is not enough" if found.proved else f"less than {scale.text(found.lower_bound)} is not enough"
    return [f"{first}; {claim}", f"why {claim}: {found.why}"]
