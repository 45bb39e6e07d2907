"""Plans for published models: `python -m benchmarks.plans [NAME ...] [--write docs/results/plans.md]`.

Every row is one `plan`, every schedule validated; a NAME is the beginning of a case's name, or `llama3`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from benchmarks.cases.plan_cases import Case, cases
from benchmarks.reporting.page import exit_code, machine, show, table
from benchmarks.reporting.suite import limits_of, parser_of
from pipesched.files.plan_file import plan_problem_from
from pipesched.problem.formatting import plain
from solver.limits import Limits
from solver.planning.plan import plan

HEAD = ("case", "published", "plan", "bound", "gap, %", "placement", "layers of each stage", "seconds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for and print, or write, their rows."""
    parser = parser_of("python -m benchmarks.plans", __doc__, 0)
    parser.add_argument("names", nargs="*", help="beginnings of names of cases, or llama3; default: all")
    args = parser.parse_args(arguments)
    wanted, limits = tuple(args.names), limits_of(args)
    rows = [
        _row(case, limits if args.units else replace(limits, seconds=args.seconds or case.seconds))
        for case in cases()
        if not wanted or case.name.startswith(wanted)
    ]
    show(args.write, "python -m benchmarks.plans", f"{machine(args.seed, args.workers)}\n\n{table(HEAD, rows)}")
    return 0


def _row(case: Case, limits: Limits) -> list[str]:
    found = plan(plan_problem_from(case.document), limits)
    published = f"{plain(case.published)} ({case.by})" if case.published is not None else "–"
    if found.best is None:
        bound = plain(float(found.lower_bound))
        return [case.name, published, "none found", bound, "", "", "", f"{limits.seconds:.0f}"]
    counts = " ".join(_runs(found.best.partition.counts))
    print(f"{case.name}: {found.status}", file=sys.stderr, flush=True)
    gap, wall = f"{100 * (found.gap or 0):.2f}", f"{found.wall_seconds:.0f}"
    return [
        case.name,
        published,
        f"{float(found.value or 0):.2f}",
        f"{float(found.lower_bound):.2f}",
        gap,
        str(found.best.choice),
        counts,
        wall,
    ]


def _runs(counts: Sequence[int]) -> Iterator[str]:
    """`2×7` for seven equal stages in a row."""
    for count, equal in groupby(counts):
        length = len(list(equal))
        yield f"{count}×{length}" if length > 1 else str(count)


if __name__ == "__main__":
    sys.exit(exit_code(main))
