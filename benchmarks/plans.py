"""Plans for published models: `python -m benchmarks.plans [NAME ...] [-o docs/results/plans.md]`.

Every row is one `plan`, every schedule validated; a NAME is the beginning of a case's name, or `llama3`.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from benchmarks.cases.plan_cases import Case, cases, llama
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan
from solver.limits import Limits
from solver.planning.plan import plan

_MARK = "<!-- rows: python -m benchmarks.plans -->"
_HEADER = (
    "| case | published | plan | bound | gap, % | placement | layers of each stage | seconds |\n" + "|---" * 8 + "|"
)
_LLAMA_HEADER = (
    "| model | devices | micro-batches | even split, 1F1B | even split, VPP | best split, 1F1B | plan | bound "
    "| gap, % |\n" + "|---" * 9 + "|"
)


def main(arguments: list[str]) -> int:
    """Run the cases asked for and print, or write, their rows."""
    args = _arguments(arguments)
    wanted = tuple(args.names)
    rows = [_HEADER]
    for case in cases():
        if not wanted or case.name.startswith(wanted):
            rows.append(_row(case, _limits(args, case.seconds)))
            print(rows[-1], flush=True)
    tables = ["\n".join(rows)] if len(rows) > 1 else []
    if not wanted or "llama3" in wanted:
        rows = [_LLAMA_HEADER]
        for row in _llama_rows(args):
            rows.append(row)
            print(row, flush=True)
        tables.append("\n".join(rows))
    if args.output:
        _write(Path(args.output), tables, args)
    return 0


def _arguments(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.plans")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, help="for every case, instead of its own")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("-o", "--output", help="a page with a mark where the tables go")
    return parser.parse_args(arguments)


def _limits(args: Namespace, seconds: float) -> Limits:
    return Limits(seconds=args.seconds or seconds, workers=args.workers)


def _row(case: Case, limits: Limits) -> str:
    found = plan(plan_problem_from(case.document), limits)
    published = f"{plain(case.published)} ({case.by})" if case.published is not None else "–"
    if found.best is None:
        bound = plain(float(found.lower_bound))
        return f"| {case.name} | {published} | none found | {bound} | | | | {limits.seconds:.0f} |"
    counts = " ".join(_runs(found.best.partition.counts))
    cells = [
        case.name,
        published,
        *_figures(found),
        str(found.best.choice),
        counts,
        f"{found.wall_seconds:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _runs(counts: Sequence[int]) -> Iterator[str]:
    """`2×7` for seven equal stages in a row."""
    for count, equal in groupby(counts):
        length = len(list(equal))
        yield f"{count}×{length}" if length > 1 else str(count)


def _figures(found: Plan) -> list[str]:
    gap = 100 * (found.gap or 0)
    return [f"{float(found.value or 0):.2f}", f"{float(found.lower_bound):.2f}", f"{gap:.2f}"]


def _llama_rows(args: Namespace) -> Iterator[str]:
    """Even and best split with published orders, and the plan with everything free."""
    for name in ("llama3-8b", "llama3-70b"):
        for devices in (4, 8, 16):
            for microbatches in (2 * devices, 4 * devices):
                problem = plan_problem_from(llama(name, devices, microbatches))
                even = replace(problem, even=True)
                known = [
                    _published(even, Choice("linear", 1), "1f1b", args),
                    _published(even, Choice("interleaved", 2), "interleaved-1f1b", args),
                    _published(problem, Choice("linear", 1), "1f1b", args),
                ]
                found = plan(problem, _limits(args, 10))
                cells = [name, str(devices), str(microbatches), *known, *_figures(found)]
                yield f"| {' | '.join(cells)} |"


def _published(problem: PlanProblem, choice: Choice, name: str, args: Namespace) -> str:
    """The value of a published order on one placement; a dash where the model has too few layers."""
    found = plan(replace(problem, choices=(choice,), schedules=(name,)), _limits(args, 4))
    return "–" if found.value is None else f"{float(found.value):.2f}"


def _write(page: Path, tables: list[str], args: Namespace) -> None:
    """Put the tables behind the page's mark."""
    workers = args.workers or os.cpu_count()
    measured = f"Measured with {workers} workers; load average {os.getloadavg()[0]:.0f} at the end."
    text = page.read_text(encoding="utf-8")
    page.write_text(text.split(_MARK)[0] + "\n\n".join([_MARK, *tables, measured]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
