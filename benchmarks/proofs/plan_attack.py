"""Plans of tiny random models against every partition, recomputation and order.

`python -m benchmarks.proofs.plan_attack [FIRST SEED] [PROBLEMS] [--bounds]`.
The bound over all partitions must not be above the best of them, and the plan must be the best, and proved so.
"""

from __future__ import annotations

import sys
from itertools import islice
from random import Random
from threading import Event
from typing import NamedTuple

from pipesched.layers.plan_problem import PlanProblem
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.master import Master
from solver.planning.plan import plan
from tests.support.plan_brute_force import best_value, partitions, tiny_plan

# Problems with more partitions take the exhaustive search too long.
_MOST_PARTITIONS = 30
_UNITS = 20.0


class Outcome(NamedTuple):
    """What one problem showed; `wrong` in words, empty where all is right."""

    tight: bool
    wrong: str


def small(problem: PlanProblem) -> bool:
    """Whether all its partitions can be tried."""
    choice = problem.choices[0]
    return len(list(islice(partitions(problem, choice), _MOST_PARTITIONS + 1))) <= _MOST_PARTITIONS


def attack(problem: PlanProblem, bounds_only: bool = False) -> Outcome:
    """Bound and plan against the best of all partitions and orders, of a problem with one placement."""
    (choice,) = problem.choices
    best = best_value(problem)[choice]
    limits = Limits(deterministic=_UNITS, workers=1)
    bound = Master(problem, choice).cheapest(Budget(limits, Event()), _UNITS).bound
    if best is None:
        value = None if bounds_only else plan(problem, limits).value
        return Outcome(bound is None, "" if value is None else f"a plan of {value} where none fits")
    if bound is None or bound * problem.tick > best:
        return Outcome(False, f"a bound of {bound} ticks above the optimum {best}")
    tight = bound * problem.tick == best
    if bounds_only:
        return Outcome(tight, "")
    found = plan(problem, limits)
    right = found.value == best and found.lower_bound == best and not found.notes
    return Outcome(
        tight, "" if right else f"plan {found.value}, bound {found.lower_bound}, optimum {best}: {found.notes}"
    )


def main(arguments: list[str]) -> int:
    """So many problems from a seed on; exit code 1 where one is wrong."""
    first, count = int(arguments[0]) if arguments else 0, int(arguments[1]) if len(arguments) > 1 else 1000
    bounds_only = "--bounds" in arguments
    seeds = (seed for seed in range(first, 10**9) if small(tiny_plan(Random(seed))))
    tight = tried = wrong = 0
    for seed in islice(seeds, count):
        outcome = attack(tiny_plan(Random(seed)), bounds_only)
        tried += 1
        tight += outcome.tight
        if outcome.wrong:
            wrong += 1
            print(f"seed {seed}: {outcome.wrong}", flush=True)
    print(f"{tried} problems: {wrong} wrong; the bound over all partitions is the optimum in {tight}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
