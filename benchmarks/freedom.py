"""Test that more freedom never ends worse: plan files drawn at random, each restricted step by step, all planned alike.

    python -m benchmarks.freedom --files 30 --units 1

Every search has the same deterministic limit and begins from nothing; each pair of a chain is compared.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from itertools import combinations
from random import Random
from time import process_time

from benchmarks.cases.drawn_plans import Link, chain, drawn_plan
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.planning.plan import plan


def main(arguments: Sequence[str] | None = None) -> int:
    """A line for each chain; 1 if a freer problem ended worse."""
    parser = ArgumentParser("python -m benchmarks.freedom", description=__doc__)
    parser.add_argument("--files", type=int, default=30, help="how many are drawn (default 30)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first (default 0)")
    parser.add_argument("--links", type=int, default=3, help="restrictions of each, one after another (default 3)")
    parser.add_argument("--units", type=float, default=1.0, help="deterministic limit of each search (default 1)")
    args = parser.parse_args(arguments)
    worse = pairs = 0
    for number in range(args.first, args.first + args.files):
        random = Random(number)
        links, begin = [*chain(random, drawn_plan(random), args.links)], process_time()
        found = [_planned(link, args.units) for link in links]
        both = [*combinations(range(len(links)), 2)]
        wrong = [pair for pair in both if _is_worse(found[pair[0]], found[pair[1]])]
        values = "; ".join(f"{link.restriction} {_value(one)}" for link, one in zip(links, found, strict=True))
        print(f"{'WORSE ' if wrong else ''}{number}: {values} ({process_time() - begin:.1f} s)", flush=True)
        pairs, worse = pairs + len(both), worse + len(wrong)
    print(f"{args.files} files, {pairs} pairs, of which the freer ended worse: {worse}")
    return int(worse > 0)


def _planned(link: Link, units: float) -> Plan:
    found = plan(link.problem, Limits(seconds=600, deterministic=units, workers=1))
    assert found.best is None or not validate(found.best.timeline), f"{link.restriction}: an invalid plan"
    return found


def _is_worse(free: Plan, narrow: Plan) -> bool:
    return narrow.value is not None and (free.value is None or free.value > narrow.value)


def _value(found: Plan) -> str:
    return f"none ({found.status})" if found.value is None else f"{plain(float(found.value))} ({found.status})"


if __name__ == "__main__":
    sys.exit(main())
