"""What `solve` and `compare` share: the options of a search, its progress on the terminal, and Ctrl-C."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from threading import Event
from types import FrameType

from rich.live import Live
from rich.text import Text

from commands.output import console, time
from pipesched.errors import BadInput
from pipesched.problem import Objective, Problem
from pipesched.solution import Progress, Solution, gap
from solver.limits import Limits
from solver.solve import solve


def add_limits(parser: ArgumentParser) -> None:
    """How long and how hard to search."""
    parser.add_argument(
        "--time-limit", type=_seconds, default=60.0, metavar="S", help="seconds to search (default: 60)"
    )
    parser.add_argument(
        "--workers", type=_workers, default=0, metavar="N", help="threads to search with (default: all cores)"
    )
    parser.add_argument("--seed", type=_seed, default=0, help="seed of the search (default: 0)")
    parser.add_argument(
        "--gap", type=_gap, default=0.0, metavar="G", help="stop once (value - bound) / value is at most G"
    )


def _seconds(text: str) -> float:
    return _real(text, "a number of seconds above 0", lambda x: x > 0)


def _gap(text: str) -> float:
    return _real(text, "a number from 0 to 1", lambda x: 0 <= x <= 1)


def _workers(text: str) -> int:
    return int(_real(text, "a whole number from 1 to 1024", lambda x: 1 <= x <= 1024 and x == int(x)))


def _seed(text: str) -> int:
    return int(_real(text, "a whole number from 0 to 2147483647", lambda x: 0 <= x < 2**31 and x == int(x)))


def _real(text: str, allowed: str, accept: Callable[[float], bool]) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or not accept(number):
        raise ArgumentTypeError(f"found {text!r}; allowed: {allowed}")
    return number


def search(problem: Problem, args: Namespace) -> Solution:
    """Solve under the options given, showing progress; Ctrl-C stops the search and keeps the best schedule found."""
    if problem.objective is Objective.PERIOD:
        raise BadInput("objective: found period; this version solves for makespan or span (see --objective)")
    limits = Limits(seconds=args.time_limit, workers=args.workers, seed=args.seed, gap=args.gap)
    stop = Event()
    with _interrupt_sets(stop), _progress(problem) as report:
        return solve(problem, limits, report, stop)


@contextmanager
def _interrupt_sets(stop: Event) -> Iterator[None]:
    """The first Ctrl-C asks the search to stop; a second one ends the program at once."""

    def handler(_signal: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def not_interrupted() -> Iterator[None]:
    """Ctrl-C waits: what was found is being written, which takes a moment."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(problem: Problem) -> Iterator[Callable[[Progress], None]]:
    """A line on standard error: live on a terminal, else one line for each new value or bound."""
    err = console(stderr=True)
    if sys.stderr.isatty():
        with Live(console=err, refresh_per_second=8, transient=True) as live:
            yield lambda moment: live.update(Text(_line(problem, moment)))
        return
    last: list[tuple[int | None, int, bool]] = []

    def report(moment: Progress) -> None:
        seen = (moment.value, moment.lower_bound, moment.doing == "CP-SAT")
        if not last or last[-1] != seen:
            last.append(seen)
            print(_line(problem, moment), file=sys.stderr, flush=True)

    yield report


def _line(problem: Problem, moment: Progress) -> str:
    found = "no schedule yet" if moment.value is None else f"best {time(problem, moment.value)}"
    apart = "" if moment.value is None else f", gap {100 * gap(moment.value, moment.lower_bound):.2f} %"
    return f"{moment.seconds:6.1f} s  {found}, bound {time(problem, moment.lower_bound)}{apart}  ({moment.doing})"
