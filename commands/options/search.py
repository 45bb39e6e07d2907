"""Options shared by `solve` and `compare`: limits of a search, its progress on the terminal, and Ctrl-C."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, Namespace, _ArgumentGroup
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import Event
from types import FrameType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from commands.options.values import seconds, share, whole
from commands.shared.console import redraws
from commands.shared.termination import end, raise_if_ended, record
from commands.shared.watch import stop_event
from heuristics.catalogue import HEURISTICS
from pipesched.ending_signals import ending_signals
from pipesched.errors import BadInput
from pipesched.problem.formatting import with_unit
from pipesched.problem.problem import Problem
from pipesched.results.gap import gap
from pipesched.results.solution import Progress, Solution
from pipesched.schedule.timeline import Timeline
from solver.engine.kernels import compiling
from solver.engine.subsolvers.exact_model import EXACT_MODEL
from solver.limits import Limits
from solver.solve import solve


def add_limits(parser: ArgumentParser, default: int = 60, what: str = "seconds to search") -> None:
    """Add the options that limit a search, with the gap at which it stops.

    `default` is its time limit in seconds, `what` the help text of this limit.
    """
    add_effort(parser, default, what)
    parser.add_argument(
        "--gap",
        type=share,
        default=0,
        metavar="G",
        help="stop once (value - bound) / value is at most G, as 1%% or 0.01 (default: 0)",
    )


def add_effort(parser: ArgumentParser | _ArgumentGroup, default: int = 60, what: str = "seconds to search") -> None:
    """Add `--time-limit` (seconds, by default `default`), `--workers` (0: all cores) and `--seed` (0), without `--gap`.

    `what` is the help text that says what the seconds are for.
    """
    text = f"{what} (default: {default})"
    parser.add_argument("--time-limit", type=seconds, default=float(default), metavar="S", help=text)
    parser.add_argument(
        "--workers", type=whole(1, 1024), default=0, metavar="N", help="threads to search with (default: all cores)"
    )
    parser.add_argument("--seed", type=whole(0, 2**31 - 1), default=0, help="seed of the search (default: 0)")


def search(problem: Problem, args: Namespace, start: Timeline | None = None, limits: Limits | None = None) -> Solution:
    """Solve a problem under the given options and show progress; return the solution.

    Ctrl-C stops the search and keeps the best schedule found. `start` is a schedule to start from, for makespan or
    span. `limits` replace those of the options. `BadInput` if `start` does not fit the problem.
    """
    limits = limits or limits_of(args)
    stop = stop_event(args)
    with interrupt_sets(stop), _progress(problem) as report:
        return solve(problem, limits, report, stop, start)


def refuse_period(problem: Problem, what: str) -> None:
    """Raise `BadInput` for the objectives period and free memory, with which an option cannot be used.

    `what` begins the sentence of the message that ends in "for makespan or span", such as "a frontier is".
    """
    objective = problem.objective
    if objective.repeats or objective.leaves is not None:
        found = objective.leaves or objective
        raise BadInput(f"objective: found {found}; {what} for makespan or span (see --objective)")


def limits_of(args: Namespace) -> Limits:
    """Return the limits given by `add_limits`; their time limit counts from the start of the program.

    So it is less than the option's by what the start took, but at least half of it.
    """
    return Limits(
        seconds=seconds_to_search(args, args.time_limit), workers=args.workers, seed=args.seed, gap=float(args.gap)
    )


def seconds_to_search(args: Namespace, limit: float) -> float:
    """Return a time limit in seconds less the time that the program's start took, but at least half of the limit."""
    return max(limit / 2, limit - getattr(args, "starting", 0.0))


@contextmanager
def interrupt_sets(stop: Event) -> Iterator[None]:
    """Context in which Ctrl-C, SIGTERM or SIGHUP sets `stop`, or ends the program if `stop` is set already."""

    def handler(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            end(number, frame)
        record(number)
        stop.set()

    with _handled(handler):
        yield


@contextmanager
def not_interrupted() -> Iterator[None]:
    """Context in which Ctrl-C, SIGTERM and SIGHUP are ignored, for the moment in which results are written."""
    with _handled(signal.SIG_IGN):
        yield


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> Iterator[None]:
    """Context with another handler for the signals that end a command, to be entered on the main thread.

    Raises `KeyboardInterrupt` if such a signal came before and its exception was discarded.
    """
    raise_if_ended()
    before = [(number, signal.signal(number, handler)) for number in ending_signals()]
    try:
        yield
    finally:
        for number, old in before:
            signal.signal(number, old)


@contextmanager
def _progress(problem: Problem) -> Iterator[Callable[[Progress], None]]:
    """Context that yields the progress callback of a solve.

    Without a live terminal it prints a line only when value or bound change, or the exact model or a compilation begins
    or ends.
    """
    last: list[tuple[Fraction | None, Fraction, bool, bool]] = []
    with progress_line() as say:

        def report(moment: Progress) -> None:
            under_way = compiling()
            seen = (moment.value, moment.lower_bound, moment.phase == EXACT_MODEL, bool(under_way))
            if redraws() or not last or last[-1] != seen:
                last.append(seen)
                say(_line(problem, moment) + (f"; compiling ({under_way}), as a first run does" if under_way else ""))

        yield report


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Context that yields a function for progress lines on standard error.

    A line replaces the one before on a terminal, and is appended elsewhere.
    """
    if redraws():
        with Live(console=Console(stderr=True, highlight=False), refresh_per_second=8, transient=True) as live:
            yield lambda line: live.update(Text(line))
    else:
        yield lambda line: print(line, file=sys.stderr, flush=True)


def _line(problem: Problem, moment: Progress) -> str:
    """Return a progress line: seconds, best value, bound, gap and the current phase.

    Before the first schedule it has seconds, bound and phase. Value and bound are in the file's unit, the gap in per
    cent.
    """
    published = f"published schedule {moment.phase}" if moment.phase in HEURISTICS.names() else moment.phase
    unit = problem.time_unit
    bound = f"bound {with_unit(moment.lower_bound, unit)}"
    if moment.value is None:
        return f"{moment.seconds:6.1f} s  no schedule yet, {bound}  (trying {published})"
    apart = f"gap {100 * gap(moment.value, moment.lower_bound):.2f} %"
    return f"{moment.seconds:6.1f} s  best {with_unit(moment.value, unit)}, {bound}, {apart}  ({published})"
