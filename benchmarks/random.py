"""Random problems of every kind a user may have: what the engine finds and proves on each.

    python -m benchmarks.random --seed 8 --seconds 60 --write docs/results/random.md
    python -m benchmarks.random --suite tasks --seed 9 --write docs/results/random.md
    python -m benchmarks.random --suite fixed --write docs/results/random.md

A seed draws a fresh suite: a table should be of one that nobody looked at while the engine was changed. `--suite fixed`
is the 41 problems with which tables of different versions are compared. Results are kept in a file after every problem;
--resume runs only those that are not there yet, and none at all if they all are.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import fmean, median

from benchmarks.cases.drawn_problems import COUNT, drawn_problems
from benchmarks.cases.drawn_tasks import drawn_tasks
from benchmarks.cases.random_problems import random_problems
from benchmarks.reporting.command_line import keep_results, limits_of, parser_of
from benchmarks.reporting.engine_table import in_percent, percent
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from benchmarks.reporting.record import Record, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import BadInput, did_you_mean
from pipesched.problem.problem import Problem

COMMAND = "python -m benchmarks.random"
DRAWN, TASKS, FIXED = "drawn", "tasks", "fixed"
HEAD = ("problem", "objective", "published", "value", "gap, %")
SUMS = ("kind", "problems", "proved", "mean gap, %", "median", "largest")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; the table of everything measured with the same settings at the end."""
    parser = parser_of(COMMAND, __doc__, 60)
    parser.add_argument(
        "--suite",
        choices=(DRAWN, TASKS, FIXED),
        default=DRAWN,
        help=f"{COUNT} drawn by the seed (default), passes of several tasks drawn by it, or the fixed 41",
    )
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="some of them, * for anything; default: all")
    parser.add_argument("--list", action="store_true", help="name the problems and stop")
    keep_results(parser, "random")
    args = parser.parse_args(arguments)
    if args.list:
        print("\n".join(problem.name for problem in _suite(args)))
        return 0
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure the problems chosen, print and perhaps write the table; 1 if a solve broke."""
    every, chosen = _suite(args), _chosen(args)
    limits = limits_of(args)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem")
    if args.resume or args.problems is not None:
        store.load()
    for number, problem in enumerate(chosen, 1):
        name = problem.name
        if store.measure(name, problem, limits, resume=args.resume):
            print(f"{number}/{len(chosen)} {name}: {percent(store.records[name].gap)}", file=sys.stderr, flush=True)
    shown = store.under(settings_of(limits))
    command = COMMAND if args.suite == DRAWN else f"{COMMAND} --suite {args.suite}"
    show(args.write, command, page_text(every, shown, store.machine))
    return 1 if any(found.error for found in shown.values()) else 0


def page_text(every: Sequence[Problem], shown: Mapping[str, Record], described: str) -> str:
    """A line for each problem that is not proved optimal, and in sums by kind how near the proofs came."""
    measured = [(problem, shown[problem.name]) for problem in every if problem.name in shown]
    left = [_line(problem, found) for problem, found in measured if found.status != "optimal"]
    parts = [described, table(HEAD, left), table(SUMS, list(_sums(measured)))]
    gaps = [found.gap for _, found in measured if found.gap is not None]
    if gaps:
        shares = ", ".join(f"{sum(gap <= most for gap in gaps)} within {100 * most:g} %" for most in (0.01, 0.03))
        better = [found.published / found.value for _, found in measured if found.published and found.value]
        parts.append(
            f"{len(measured)} problems: {sum(gap == 0 for gap in gaps)} proved optimal, {shares}; gap "
            f"{percent(fmean(gaps))} in the mean, {percent(median(gaps))} in the median, {percent(max(gaps))} at most."
        )
        if better:
            parts.append(
                f"The best published schedule that fits, where one does ({len(better)}), takes {fmean(better):.2f} "
                "times as long in the mean."
            )
    return "\n\n".join(parts)


def _sums(measured: Sequence[tuple[Problem, Record]]) -> Iterable[list[str]]:
    """A line for each placement, with and without overlapped blocks."""
    by_kind: dict[str, list[float]] = {}
    for problem, found in measured:
        if found.gap is not None:
            by_kind.setdefault(kind_of(problem), []).append(found.gap)
    for kind, gaps in by_kind.items():
        proved = sum(gap == 0 for gap in gaps)
        yield [kind, str(len(gaps)), str(proved), *(in_percent(of(gaps)) for of in (fmean, median, max))]


def kind_of(problem: Problem) -> str:
    """The placement as the name says it, and whether passes may overlap in blocks."""
    words = problem.name.partition(" p=")[0].split(" ", 1)
    placement = words[-1] if words[0].replace("-", "").isdigit() else " ".join(words)
    return placement.partition(",")[0] + (", blocks" if problem.overlaps else "")


def _suite(args: Namespace) -> tuple[Problem, ...]:
    if args.suite == FIXED:
        return random_problems()
    return (drawn_problems if args.suite == DRAWN else drawn_tasks)(args.seed)


def _chosen(args: Namespace) -> list[Problem]:
    every, patterns = _suite(args), args.problems or ["*"]
    for pattern in patterns:
        if not any(fnmatchcase(problem.name, pattern) for problem in every):
            near = did_you_mean(pattern, [problem.name for problem in every])
            raise BadInput(f"--problems: found {pattern!r}; allowed: names of --list, * for anything{near}")
    return [problem for problem in every if any(fnmatchcase(problem.name, pattern) for pattern in patterns)]


def _line(problem: Problem, found: Record) -> list[str]:
    return [
        problem.name,
        problem.objective.value,
        _number(found.published) or "none",
        _number(found.value) or found.status,
        found.error or in_percent(found.gap),
    ]


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:.8g}"


if __name__ == "__main__":
    sys.exit(main())
