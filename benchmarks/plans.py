"""Plans for published models: `python -m benchmarks.plans [NAME ...] [--write docs/results/plans.md]`.

Every row is one `plan`, every schedule validated; a NAME is the beginning of a case's name, or `llama3`.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from benchmarks.cases.plan_cases import Case, cases, llama
from benchmarks.reporting.command_line import limits_of, parser_of
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan
from solver.limits import Limits
from solver.planning.plan import plan

COMMAND = "python -m benchmarks.plans"
HEAD = ("case", "published", "plan", "bound", "gap, %", "placement", "layers of each stage", "seconds")
LLAMA_HEAD = (
    *("model", "devices", "micro-batches", "even split, 1F1B", "even split, VPP", "best split, 1F1B"),
    *("plan", "bound", "gap, %"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases asked for and print, or write, their rows."""
    parser = parser_of(COMMAND, __doc__, 0, "each case; 0 for its own")
    parser.add_argument("names", nargs="*", help="beginnings of names of cases, or llama3; default: all")
    args = parser.parse_args(arguments)
    wanted = tuple(args.names)
    chosen = [case for case in cases() if not wanted or case.name.startswith(wanted)]
    tables = [table(HEAD, [_row(case, _limits(args, case.seconds)) for case in chosen])] if chosen else []
    if not wanted or "llama3" in wanted:
        tables.append(table(LLAMA_HEAD, list(_llama_rows(args))))
    show(args.write, COMMAND, "\n\n".join([machine(args.seed, args.workers), *tables]))
    return 0


def _limits(args: Namespace, seconds: float) -> Limits:
    return replace(limits_of(args), seconds=args.seconds or seconds)


def _row(case: Case, limits: Limits) -> list[str]:
    found = plan(plan_problem_from(case.document), limits)
    published = f"{plain(case.published)} ({case.by})" if case.published is not None else "–"
    if found.best is None:
        bound = plain(float(found.lower_bound))
        return [case.name, published, "none found", bound, "", "", "", f"{limits.seconds:.0f}"]
    counts = " ".join(_runs(found.best.partition.counts))
    print(f"{case.name}: {found.status}", file=sys.stderr, flush=True)
    wall = f"{found.wall_seconds:.0f}"
    return [case.name, published, *_figures(found), str(found.best.choice), counts, wall]


def _runs(counts: Sequence[int]) -> Iterator[str]:
    """`2×7` for seven equal stages in a row."""
    for count, equal in groupby(counts):
        length = len(list(equal))
        yield f"{count}×{length}" if length > 1 else str(count)


def _figures(found: Plan) -> list[str]:
    gap = 100 * (found.gap or 0)
    return [f"{float(found.value or 0):.2f}", f"{float(found.lower_bound):.2f}", f"{gap:.2f}"]


def _llama_rows(args: Namespace) -> Iterator[list[str]]:
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
                yield [name, str(devices), str(microbatches), *known, *_figures(found)]


def _published(problem: PlanProblem, choice: Choice, name: str, args: Namespace) -> str:
    """The value of a published order on one placement; a dash where the model has too few layers."""
    found = plan(replace(problem, choices=(choice,), schedules=(name,)), _limits(args, 4))
    return "–" if found.value is None else f"{float(found.value):.2f}"


if __name__ == "__main__":
    sys.exit(exit_code(main))
