"""The engine benchmark, in one table: value, bound, gap, and when each was reached.

    python -m benchmarks.engine --seconds 60 --workers 2 --write docs/results/published.md

The rival in the same run is the Zero Bubble paper's own search, which `solve` tries on every problem. Results are kept
in a file after every row; --resume runs only rows that are not there yet, and none at all if they all are.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace

from benchmarks.cases.rows import Row, rows, select
from benchmarks.reporting.command_line import keep_results, limits_of, parser_of
from benchmarks.reporting.engine_table import markdown, said
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show
from benchmarks.reporting.record import settings_of
from benchmarks.reporting.store import Store
from solver.limits import Limits

COMMAND = "python -m benchmarks.engine"


def main() -> int:
    """Run what was asked for; the table of everything in the results at the end."""
    parser = parser_of(COMMAND, __doc__, 60)
    parser.add_argument("--rows", metavar="NAME,...", help="rows or groups, * for anything; default: every row")
    parser.add_argument("--list", action="store_true", help="name the rows and what they aim at, and stop")
    keep_results(parser, "engine")
    args = parser.parse_args()
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
        if store.measure(row.name, row.problem, _limits(row, args), resume=args.resume):
            print(f"{number}/{len(chosen)} {row.name}", file=sys.stderr, flush=True)
    shown = {
        row.name: found
        for row in rows()
        for found in [store.under(settings_of(_limits(row, args))).get(row.name)]
        if found is not None
    }
    show(args.write, COMMAND, markdown(rows(), shown, store.machine))
    return 1 if any(found.error for found in shown.values()) else 0


def _limits(row: Row, args: Namespace) -> Limits:
    """The time asked for, or less where the row's aim is to be fast."""
    seconds = args.seconds if row.most_seconds is None else min(args.seconds, row.most_seconds)
    return replace(limits_of(args), seconds=seconds)


if __name__ == "__main__":
    sys.exit(main())
