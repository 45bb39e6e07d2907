"""Stress test of every branch of every bound: problems on which it is strongest, against the optimum over all orders.

    python -m benchmarks.proofs.bound_attack --count 10000 --seconds 600 --resume --write docs/proofs.md

Results are kept in a file after every branch; --resume runs only what is not there yet. Exit code 1 if a claim is
wrong.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf
from pathlib import Path
from random import Random

from benchmarks.proofs.bound_branches import BRANCHES, Branch, Claim
from benchmarks.proofs.bound_problems import changed, draw
from benchmarks.proofs.exhaustive import NotTiny, least_value
from benchmarks.reporting.machine import machine
from benchmarks.reporting.page import exit_code, put, table
from pipesched.files.atomic_write import write_whole
from pipesched.problem.problem import Problem

COMMAND = "python -m benchmarks.proofs.bound_attack"

# Changes of a problem between two that are tried, and how often one starts anew.
_CHANGES, _ANEW = 3, 0.1


@dataclass
class Found:
    """What an attack found: problems, those whose optimum the claim equals, and those whose optimum is below it.

    `too_large` problems had more orders than are tried, and count nowhere else.
    """

    problems: int = 0
    attained: int = 0
    too_large: int = 0
    wrong: list[tuple[Problem, Claim, Fraction]] = field(default_factory=list)


def attack(branch: Branch, count: int, seed: int, seconds: float = inf) -> Found:
    """Hold so many claims of a branch to the optimum; fewer where time is up or no more problems have such claims."""
    found, end = Found(), time.monotonic() + seconds
    for problem, claim in problems(branch, seed, end):
        try:
            least = least_value(problem, branch.objective or problem.objective, floor(claim.value))
        except NotTiny:
            found.too_large += 1
            continue
        found.problems += 1
        found.attained += least == claim.value
        if least is not None and least < claim.value:
            found.wrong.append((problem, claim, least))
        if found.problems == count:
            break
    return found


def problems(branch: Branch, seed: int, end: float = inf) -> Iterator[tuple[Problem, Claim]]:
    """Problems in which no certificate is stronger than the branch's, and its claims, until `end` (monotonic clock).

    Each is some changes away from the one before; a change is kept if the claim is then further above all others: an
    argument that claims too much rises above what the sound ones prove.
    """
    random = Random(f"{branch.name} {seed}")
    problem, claim = None, None
    while time.monotonic() < end:
        if problem is None or claim is None or random.random() < _ANEW:
            problem = draw(random, branch.likely)
            claim = branch.claim(problem)
        for _ in range(_CHANGES):
            if claim is None:
                break
            other = changed(random, problem)
            new = branch.claim(other)
            if new is not None and (new.margin >= claim.margin or random.random() < _ANEW):
                problem, claim = other, new
        if claim is not None:
            yield problem, claim


def markdown(results: dict[str, dict[str, int]], described: str) -> str:
    """A row for each branch that was attacked, in the order of the branches."""
    lines = []
    for branch in BRANCHES:
        if branch.name in results:
            found = results[branch.name]
            share = f"{100 * found['attained'] / found['problems']:.0f} %" if found["problems"] else ""
            lines.append([branch.name, str(found["problems"]), str(found["wrong"]), share, str(found["too large"])])
    head = ("branch", "problems", "claims above the optimum", "claims equal to it", "left out: too many orders")
    total = sum(found["problems"] for found in results.values())
    return f"{described}\n\n{table(head, lines)}\n\n{total} problems in all."


def main() -> int:
    """Attack every branch, print the table; 1 if a claim is wrong."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Attack, keep, then write what was asked for."""
    settings = {"count": args.count, "seed": args.seed, "seconds": args.seconds}
    results: dict[str, dict[str, int]] = {}
    if args.resume and args.results.exists():
        kept = json.loads(args.results.read_text(encoding="utf-8"))
        results = kept["branches"] if kept["settings"] == settings else {}
    for branch in BRANCHES:
        if args.branches not in branch.name or branch.name in results:
            continue
        print(branch.name, file=sys.stderr, flush=True)
        found = attack(branch, args.count, args.seed, args.seconds)
        for problem, claim, least in found.wrong:
            print(f"{claim} is above {least}, the optimum of {problem}", file=sys.stderr, flush=True)
        results[branch.name] = {
            "problems": found.problems,
            "wrong": len(found.wrong),
            "attained": found.attained,
            "too large": found.too_large,
        }
        write_whole(args.results, json.dumps({"settings": settings, "branches": results}, indent=1) + "\n")
    most = f"{args.count} problems a branch at most, {args.seconds:g} s a branch at most"
    text = markdown(results, f"{machine(args.seed, 1, 'numba')}; {most}")
    print(text)
    if args.write is not None:
        put(args.write, COMMAND, text)
    return 1 if any(found["wrong"] for found in results.values()) else 0


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="problems for each branch (default 10000)")
    parser.add_argument("--seconds", type=float, default=600, help="for each branch at most (default 600)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--branches", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--results", type=Path, default=Path("results/bound-attack.json"), metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="keep what was already run with these settings")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page, docs/proofs.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
