"""Unequal micro-batches: the instance of DynaPipe's tests, random factors, and bounds against every order.

python -m benchmarks.unequal --seconds 60 --attacked 3000 --write docs/results/unequal.md
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from benchmarks.proofs.unequal_problems import bounds, draw_unequal, optimum_of, solved
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put_or_print, table
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
# CP-SAT's units of work for a solve of a tiny problem; every how many problems it and the slower bounds are tried.
_WORK, _SOLVED_EVERY = 0.3, 10


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


def solved_table(problems: Sequence[Problem], seconds: float, workers: int) -> str:
    """Each problem with its best published schedule, and what a solve finds and proves."""
    lines = []
    for problem in problems:
        found = solve(problem, Limits(seconds=seconds, workers=workers))
        best = found.best_candidate
        old = "none fits" if best is None else f"{best.value:.6g} ({best.name})"
        gap = "" if found.gap is None else f"{100 * found.gap:.2f}"
        value = "none" if found.value is None else f"{found.value:.6g}"
        lines.append([problem.name, old, value, f"{found.lower_bound:.6g}", gap, f"{found.wall_seconds:.0f} s"])
        print(f"{problem.name}: solved", file=sys.stderr, flush=True)
    return table(("problem", "best published", "value", "bound", "gap, %", "time"), lines)


def attacked_table(count: int, seed: int) -> tuple[str, int]:
    """So many tiny problems with factors, every bound held to the least value of all orders; and how many are wrong."""
    claims, equal, wrong = Counter[str](), Counter[str](), Counter[str]()
    problems = 0
    for number in range(seed, seed + count):
        problem = draw_unequal(Random(number))
        best = optimum_of(problem)
        if best is None:
            continue
        problems += 1
        found = list(bounds(problem))
        if number % _SOLVED_EVERY == 0:
            low, high = solved(problem, _WORK, number)
            found.append(("a whole solve", low))
            wrong["a whole solve: value"] += high < best
        for kind, value in found:
            claims[kind] += 1
            equal[kind] += value == best
            wrong[kind] += value > best
            if value > best:
                print(f"{kind} claims {value} above {best}, number {number}", file=sys.stderr, flush=True)
    lines = [[kind, str(claims[kind]), str(wrong[kind]), str(equal[kind])] for kind in sorted(claims)]
    head = ("bound", "claims", "claims above the optimum", "claims equal to it")
    text = f"{problems} random problems of {count} drawn had few enough orders to try them all."
    return f"{text}\n\n{table(head, lines)}", sum(wrong.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a bound is wrong."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each problem (default 60)")
    parser.add_argument("--workers", type=int, default=2, help="threads of each search (default 2)")
    parser.add_argument("--attacked", type=int, default=3000, help="tiny problems that are drawn (default 3000)")
    parser.add_argument("--seed", type=int, default=0, help="of the first tiny problem")
    parser.add_argument("--only", metavar="TEXT", default="", help="problems whose names have this text")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page of the docs")
    args = parser.parse_args(arguments)
    return exit_code(lambda: _run(args))


def _run(args: Namespace) -> int:
    chosen = [problem for problem in (*dynapipe(), *spread()) if args.only in problem.name]
    attacked, wrong = attacked_table(args.attacked, args.seed) if args.attacked else ("", 0)
    described = f"{machine(args.seed, args.workers)}, {args.seconds:g} s a problem."
    text = "\n\n".join([described, solved_table(chosen, args.seconds, args.workers), attacked])
    put_or_print(args.write, COMMAND, text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
