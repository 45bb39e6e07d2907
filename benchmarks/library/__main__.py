"""The library of published instances: `python -m benchmarks.library [--only TEXT] [--verify] [--solve]`.

Checks every schedule and bound without the solver, as `pipesched check` does, compares published figures, and writes
the table of docs/library.md. With --solve, instances without a proved optimum are searched first.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.library.instance import LIBRARY, instances
from benchmarks.library.page import line, summary, text
from benchmarks.library.solving import improve
from benchmarks.library.standing import Standing, standing
from benchmarks.reporting.page import exit_code, put
from pipesched.errors import BadInput
from solver.limits import Limits

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
COMMAND = "python -m benchmarks.library"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all holds, 1 if a file is refused or a figure contradicts another, 2 for wrong descriptions."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="instances whose name contains it; no page is written"
    )
    parser.add_argument("--verify", action="store_true", help="write no page")
    parser.add_argument("--solve", action="store_true", help="search for better schedules and bounds of open instances")
    parser.add_argument("--time-limit", type=float, default=60, metavar="S", help="for each search (default 60)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each search (default 2)")
    parser.add_argument("--seed", type=int, default=0, help="of each search (default 0)")
    parser.add_argument("--library", type=Path, default=LIBRARY, metavar="DIR", help="another folder of instances")
    return exit_code(lambda: _run(parser.parse_args(arguments)))


def _run(args: Namespace) -> int:
    chosen = instances(args.library, args.only)
    if not chosen:
        raise BadInput(f"--only: found {args.only!r}; allowed: a part of an instance's name")
    limits = Limits(seconds=args.time_limit, workers=args.workers, seed=args.seed)
    every: list[Standing] = []
    for one in chosen:
        found = standing(one)
        if args.solve and found.gap != 0 and improve(found, limits):
            found = standing(one)
        every.append(found)
        print(line(found), flush=True)
        for mistake in found.mistakes:
            print(f"WRONG: {mistake}", file=sys.stderr, flush=True)
    print(summary(every))
    if not args.verify and not args.only:
        put(PAGE, COMMAND, text(every))
    return 1 if any(found.mistakes for found in every) else 0


if __name__ == "__main__":
    sys.exit(main())
