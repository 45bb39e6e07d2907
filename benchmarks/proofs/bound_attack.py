"""Stress test of every branch of every bound: problems on which it is strongest, against the optimum over all orders.

    python -m benchmarks.proofs.bound_attack --count 10000 --seconds 3600 --resume --write docs/results/bound-attack.md

Works in rounds, each of one branch with a seed of its own; the branches take turns. Counts are kept in a file after
every round; --resume adds to them until every branch has the problems that are asked for, and without it those of
--branches start from zero: do so when a bound has changed. Exit code 1 if a claim is wrong.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, inf
from pathlib import Path
from random import Random

from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import changed, draw
from benchmarks.proofs.branch import Branch, Claim
from benchmarks.reporting.page import exit_code, machine, show, table
from pipesched.files.atomic_write import write_whole
from pipesched.problem.problem import Objective, Problem
from pipesched.results.bound_names import bound_name
from tests.support.exhaustive.optimum import compared, least_value
from tests.support.task_brute_force import TooManyOrdersError

COMMAND = "python -m benchmarks.proofs.bound_attack"
_RESULTS = Path(__file__).with_name("bound_attack.json")

# Problems from one beginning to the next, at least as many as were drawn for it; how often one accepts a worse one.
_SUCCESSION, _WORSE = 25, 0.04
# Steps of the search for a better schedule, beyond which a problem has too many orders: more find little more.
_STEPS = 3_000
# Problems of a round, and its most seconds of processor time.
_ROUND, _SECONDS = 500, 10.0


@dataclass
class AttackCounts:
    """Counts of an attack: problems, those whose optimum the claim equals, and those whose optimum is below it.

    `too_large` problems had more orders than are tried, and count nowhere else.
    """

    problems: int = 0
    attained: int = 0
    too_large: int = 0
    wrong: list[tuple[Problem, Claim, Fraction | None]] = field(default_factory=list)


def attack(branch: Branch, count: int, seed: int, seconds: float = inf, most_wrong: float = inf) -> AttackCounts:
    """Hold so many claims of a branch to the optimum; fewer where the processor time is up, or so many are wrong."""
    found, end = AttackCounts(), time.process_time() + seconds
    for problem, claim in problems(branch, seed, end):
        objective, posed = branch.objective or problem.objective, branch.posed(problem)
        try:
            best = compared(posed, objective, claim.value, _STEPS)
        except TooManyOrdersError:
            found.too_large += 1
            continue
        found.problems += 1
        found.attained += best.attained
        if best.beaten:
            found.wrong.append((posed, claim, _least(posed, objective, claim)))
        if found.problems == count or len(found.wrong) >= most_wrong:
            break
    return found


def _least(problem: Problem, objective: Objective, claim: Claim) -> Fraction | None:
    """The optimum below a claim; None where that takes too long to find."""
    try:
        return least_value(problem, objective, ceil(claim.value))
    except TooManyOrdersError:
        return None


def problems(branch: Branch, seed: int, end: float = inf) -> Iterator[tuple[Problem, Claim]]:
    """Problems in which no certificate is stronger than the branch's, and its claims, until so much process time.

    No two are equal. Each differs in one number from the one that is gone on from, which it replaces if its claim is
    further above all others: an argument that claims too much rises above what the sound ones prove. The harder it is
    to draw a problem to begin from, the longer one goes on from it.
    """
    random, seen = Random(f"{branch.name} {seed}"), set[Problem]()
    problem, claim, drawn = None, None, 0
    while time.process_time() < end:
        if problem is None or claim is None or random.random() < 1 / max(_SUCCESSION, drawn):
            drawn = 1 if claim else drawn + 1
            other = draw(random, branch.likely)
            claim = None
        else:
            other = changed(random, problem, branch.likely)
        if other in seen:
            continue
        seen.add(other)
        new = branch.claim(other)
        if new is None:
            continue
        if claim is None or new.margin >= claim.margin or random.random() < _WORSE:
            problem, claim = other, new
        yield other, new


def markdown(results: Mapping[str, Mapping[str, int]], described: str) -> str:
    """A row for each bound that was attacked, in the order of its branches; a wrong claim is named by its branch."""
    by_bound: dict[str, Counter[str]] = {}
    attacked = [branch for branch in BRANCHES if results.get(branch.name, {}).get("problems")]
    for branch in attacked:
        by_bound.setdefault(branch.kind, Counter()).update(results[branch.name], branches=1)
    head = ("bound", "branches", "problems", "claims above the optimum", "claims equal to it", "too many orders")
    lines = []
    for bound, every in by_bound.items():
        attained = f"{100 * every['attained'] / every['problems']:.0f} %"
        counts = str(every["branches"]), str(every["problems"]), str(every["wrong"]), attained, str(every["too large"])
        lines.append([bound_name(bound), *counts])
    total = sum(every["problems"] for every in by_bound.values())
    wrong = [branch.name for branch in attacked if results[branch.name].get("wrong")]
    named = f"\n\nWrong claims: {', '.join(wrong)}." if wrong else ""
    return f"{described}\n\n{table(head, lines)}\n\n{total} problems in all.{named}"


def main() -> int:
    """Attack every branch, print the table; 1 if a claim is wrong."""
    args = arguments()
    return exit_code(lambda: run(args))


def run(args: Namespace) -> int:
    """Attack, keep, then write what was asked for."""
    known = json.loads(args.results.read_text(encoding="utf-8")) if args.results.exists() else {}
    results = {branch.name: Counter[str](known.get(branch.name)) for branch in BRANCHES}
    asked = [branch for branch in BRANCHES if args.branches in branch.name]
    for branch in () if args.resume else asked:
        results[branch.name] = Counter(rounds=results[branch.name]["rounds"])
    end, busy = time.monotonic() + args.seconds, dict[Future[AttackCounts], Branch]()
    with ProcessPoolExecutor(args.workers, initializer=gc.freeze) as pool:
        while True:
            left = [branch for branch in asked if results[branch.name]["problems"] < args.count]
            while left and len(busy) < args.workers and time.monotonic() < end:
                # In turn, since some branches find few problems in a round.
                branch = min(left, key=lambda one: results[one.name]["rounds"])
                counts = results[branch.name]
                seed, few = args.seed + counts["rounds"], min(_ROUND, args.count - counts["problems"])
                busy[pool.submit(a_round, branch.name, few, seed)] = branch
                counts["rounds"] += 1
            if not busy:
                break
            for done in wait(busy, return_when=FIRST_COMPLETED).done:
                _count(busy.pop(done).name, results, done.result())
            write_whole(args.results, json.dumps(results, indent=1, sort_keys=True) + "\n")
    described = machine(args.seed, args.workers, "numba")
    show(args.write, COMMAND, markdown(results, f"{described}; {args.count} problems a branch asked for"))
    return 1 if any(counts["wrong"] for counts in results.values()) else 0


def a_round(name: str, count: int, seed: int) -> AttackCounts:
    """A round of the branch of this name, in a process of its own."""
    return attack(next(branch for branch in BRANCHES if branch.name == name), count, seed, _SECONDS)


def _count(name: str, results: Mapping[str, Counter[str]], found: AttackCounts) -> None:
    """Add the counts of a round; claims that are wrong are printed whole."""
    for problem, claim, least in found.wrong:
        known = replace(problem, name="").__dict__
        print(f"{name}: {claim} is above {least}, the optimum of {known}", file=sys.stderr, flush=True)
    more = {"problems": found.problems, "attained": found.attained, "too large": found.too_large}
    results[name].update(more | {"wrong": len(found.wrong)})


def arguments() -> Namespace:
    """The command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="problems for each branch (default 10000)")
    parser.add_argument("--seconds", type=float, default=3600, help="in all at most (default 3600)")
    parser.add_argument("--seed", type=int, default=0, help="of each branch's first round (default 0)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--branches", metavar="TEXT", default="", help="only those whose names have this text")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="add to the counts of the file")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to write, docs/results/bound-attack.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
