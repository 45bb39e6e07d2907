"""Random problems of every kind a user may have: what the engine finds and proves on each.

    python -m benchmarks.random --seed 8 --seconds 60 --write docs/results/random.md
    python -m benchmarks.random --suite fixed --write docs/results/random.md

A seed draws a fresh suite: a table should be of one that nobody looked at while the engine was changed. `--suite fixed`
is the 41 problems with which tables of different versions are compared. Results are kept in a file after every problem;
--resume runs only those that are not there yet, and none at all if they all are.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

from benchmarks.cases.drawn_problems import COUNT, drawn_problems
from benchmarks.cases.random_problems import random_problems
from benchmarks.reporting.engine_table import in_percent, percent
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from benchmarks.reporting.record import Record, failed, record, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import BadInput, PipeschedError, did_you_mean
from pipesched.problem.problem import Problem
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.random"
DRAWN, FIXED = "drawn", "fixed"
HEAD = ("problem", "objective", "published", "value", "gap, %")
SUMS = ("kind", "problems", "proved", "mean gap, %", "median", "largest")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; the table of everything measured with the same settings at the end."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--suite", choices=(DRAWN, FIXED), default=DRAWN, help=f"{COUNT} drawn by the seed (default), or the fixed 41"
    )
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="some of them, * for anything; default: all")
    parser.add_argument("--list", action="store_true", help="name the problems and stop")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem (default 60)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each search (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of the suite drawn, and of the search (default 0)")
    parser.add_argument("--results", type=Path, default=Path("results/random.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep what was already measured with these settings")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/random.md")
    args = parser.parse_args(arguments)
    if args.list:
        print("\n".join(problem.name for problem in _suite(args)))
        return 0
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure the problems chosen, print and perhaps write the table; 1 if a solve broke."""
    every, chosen = _suite(args), _chosen(args)
    limits = Limits(seconds=args.seconds, workers=args.workers, seed=args.seed)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem")
    if args.resume or args.problems is not None:
        store.load()
    for number, problem in enumerate(chosen, 1):
        name = problem.name
        if not (args.resume and store.has(name, settings_of(limits))):
            store.add(name, _measured(problem, limits))
            found = store.records[name]
            print(f"{number}/{len(chosen)} {name}: {percent(found.gap)} {found.error}", file=sys.stderr, flush=True)
    shown = store.under(settings_of(limits))
    text = page_text(every, shown, store.machine)
    print(text)
    if args.write is not None:
        put(args.write, COMMAND if args.suite == DRAWN else f"{COMMAND} --suite {FIXED}", text)
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
    return drawn_problems(args.seed) if args.suite == DRAWN else random_problems()


def _chosen(args: Namespace) -> list[Problem]:
    every, patterns = _suite(args), args.problems or ["*"]
    for pattern in patterns:
        if not any(fnmatchcase(problem.name, pattern) for problem in every):
            near = did_you_mean(pattern, [problem.name for problem in every])
            raise BadInput(f"--problems: found {pattern!r}; allowed: names of --list, * for anything{near}")
    return [problem for problem in every if any(fnmatchcase(problem.name, pattern) for pattern in patterns)]


def _measured(problem: Problem, limits: Limits) -> Record:
    """One problem. A solve that breaks is a result too."""
    started = perf_counter()
    try:
        solution = solve(problem, limits)
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        return failed(problem.name, limits, problem, perf_counter() - started, error)
    return record(problem.name, solution, limits)


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
