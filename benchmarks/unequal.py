"""Unequal micro-batches: the instance of DynaPipe's tests, and random factors.

python -m benchmarks.unequal --seconds 60 --write docs/results/unequal.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from random import Random

from benchmarks.reporting.command_line import limits_of, parser_of
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, show, table
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from solver.limits import Limits
from solver.solve import solve

COMMAND = "python -m benchmarks.unequal"

# DynaPipe's tests (arXiv 2311.10418): eight layers on four devices, B = 2F, no transfers, memory ample.
_LAYERS = [4000] * 4 + [2000] * 4
_FACTORS = [1, 0.8, 1.2, 0.9, 1.1, 0.7, 1.4, 0.6]
# Random factors lie within this of 1.
_SPREAD = 0.3
_SEEDS = 3


def dynapipe() -> Iterator[Problem]:
    """Two layers a device on three placements, the order of micro-batches fixed and free."""
    pairs = [first + second for first, second in zip(_LAYERS[::2], _LAYERS[1::2], strict=True)]
    for placement, forward, chunks in (("linear", pairs, 1), ("interleaved", _LAYERS, 2), ("wave", _LAYERS, 2)):
        for order in ("fixed", "free"):
            shape = {"placement": placement} | ({"chunks": chunks} if chunks > 1 else {})
            yield problem_from(
                {
                    "name": f"DynaPipe, {placement}, {order}",
                    "devices": 4,
                    "microbatches": len(_FACTORS),
                    "times": {"forward": forward, "backward": [2 * ticks for ticks in forward]},
                    "microbatch_scale": _FACTORS,
                    "microbatch_order": order,
                }
                | shape
            )


def spread() -> Iterator[Problem]:
    """Sixteen micro-batches with random factors on four devices, weight passes apart, memory for six of the mean."""
    for seed in range(_SEEDS):
        random = Random(seed)
        scale = [round(random.uniform(1 - _SPREAD, 1 + _SPREAD), 2) for _ in range(16)]
        for order in ("fixed", "free"):
            yield problem_from(
                {
                    "name": f"p=4 m=16, factors within {_SPREAD} of 1, seed {seed}, {order}",
                    "devices": 4,
                    "microbatches": 16,
                    "times": {"forward": 10, "backward": 10, "weight": 6, "transfer": 1},
                    "memory": {"capacity": 6},
                    "microbatch_scale": scale,
                    "microbatch_order": order,
                }
            )


def solved_table(problems: Sequence[Problem], limits: Limits) -> str:
    """Each problem with its best published schedule, and what a solve finds and proves."""
    lines = []
    for problem in problems:
        found = solve(problem, limits)
        best = found.best_candidate
        old = "none fits" if best is None else f"{best.value:.6g} ({best.name})"
        gap = "" if found.gap is None else f"{100 * found.gap:.2f}"
        value = "none" if found.value is None else f"{found.value:.6g}"
        lines.append([problem.name, old, value, f"{found.lower_bound:.6g}", gap, f"{found.wall_seconds:.0f} s"])
        print(f"{problem.name}: solved", file=sys.stderr, flush=True)
    return table(("problem", "best published", "value", "bound", "gap, %", "time"), lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = parser_of(COMMAND, __doc__, 60)
    parser.add_argument("--only", metavar="TEXT", default="", help="problems whose names have this text")
    args = parser.parse_args(arguments)
    chosen = [problem for problem in (*dynapipe(), *spread()) if args.only in problem.name]
    described = f"{machine(args.seed, args.workers)}, {args.seconds:g} s a problem."
    show(args.write, COMMAND, f"{described}\n\n{solved_table(chosen, limits_of(args))}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
