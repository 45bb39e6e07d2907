"""The engine benchmark, in one table: value, bound, gap, and when each was reached.

    python -m benchmarks.engine --seconds 60 --workers 2 --write docs/results/published.md

Rivals in the same run: the Zero Bubble paper's own search, which `solve` tries on every problem, and with --plain a
plain CP-SAT model (intervals, no-overlap, cumulative; no bounds) given the same time. Results are kept in a file after
every row; --resume runs only rows that are not there yet, and none at all if they all are.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.cases.rows import Row, rows, select
from benchmarks.reporting.engine_table import markdown, said
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put
from benchmarks.reporting.record import Record, failed, record, settings_of
from benchmarks.reporting.store import Store
from benchmarks.rivals.plain_cp_sat import plain_gap
from pipesched.errors import PipeschedError
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.engine"


def main() -> int:
    """Run what was asked for; the table of everything in the results at the end."""
    args = arguments()
    if args.list:
        for row in rows():
            print(f"{row.group:9} {row.name:32} {said(row.aim)}")
        return 0
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Measure the rows chosen, print and perhaps write the table; 1 if a solve broke."""
    chosen = select(args.rows)
    store = Store(args.results, f"{machine(args.seed, args.workers)}; {args.seconds:g} s a problem")
    if args.resume or args.rows is not None:
        store.load()
    for number, row in enumerate(chosen, 1):
        limits = limits_of(row, args)
        if args.resume and store.has(row.name, settings_of(limits)):
            continue
        print(f"{number}/{len(chosen)} {row.name}", file=sys.stderr, flush=True)
        store.add(row.name, measure_row(row, limits, args.plain))
    shown = {
        row.name: found
        for row in rows()
        for found in [store.under(settings_of(limits_of(row, args))).get(row.name)]
        if found is not None
    }
    text = markdown(rows(), shown, store.machine)
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if any(found.error for found in shown.values()) else 0


def limits_of(row: Row, args: Namespace) -> Limits:
    """The time asked for, or less where the row's aim is to be fast."""
    seconds = args.seconds if row.most_seconds is None else min(args.seconds, row.most_seconds)
    return Limits(seconds=seconds, workers=args.workers, seed=args.seed)


def measure_row(row: Row, limits: Limits, plain: bool = False) -> Record:
    """One row. A solve that breaks is a result too: the other rows still run."""
    started = perf_counter()
    try:
        solution = solve(row.problem, limits)
        found = record(row.name, solution, limits)
        return replace(found, plain_gap=plain_gap(solution, limits)) if plain else found
    except (PipeschedError, ArithmeticError, LookupError, ValueError, AssertionError) as error:
        print(f"{row.name}: {type(error).__name__}: {error}", file=sys.stderr)
        return failed(row.name, limits, row.problem, perf_counter() - started, error)


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--rows", metavar="NAME,...", help="rows or groups, * for anything; default: every row")
    parser.add_argument("--list", action="store_true", help="name the rows and what they aim at, and stop")
    parser.add_argument("--seconds", type=float, default=60, help="for each problem (default 60)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="also plain CP-SAT: doubles the time")
    parser.add_argument("--results", type=Path, default=Path("results/engine.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep rows already measured with these settings")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/published.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
