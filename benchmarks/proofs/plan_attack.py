"""Plans of tiny random models against every partition, recomputation and order.

`python -m benchmarks.proofs.plan_attack [FIRST SEED] [PROBLEMS] [--bounds] [--varied] [--unequal] [--keep]`.
The bound over all partitions must not be above the best of them, and the plan must be the best, and proved so. A plan
is there, so it is enough to look for a better one: all orders of all partitions are tried below its value.
`--varied`: models with embedding, head and multi-token prediction, several ways of recomputation, rules and placements.
`--unequal`: on devices of unequal speed and memory.
`--keep` writes the counts into plan_attack.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from math import ceil
from pathlib import Path
from random import Random
from threading import Event
from typing import NamedTuple

from benchmarks.proofs.exhaustive.optimum import NotTiny, least_value
from pipesched.files.atomic_write import write_whole
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.results.plan import Plan
from pipesched.results.solution import Status
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.partitions.master import Master
from solver.planning.plan import plan
from tests.support.brute_force import optimum
from tests.support.plan_brute_force import best_value, partitions, tiny_plan
from tests.support.unequal_devices import on_unequal_devices
from tests.support.varied_plans import varied_plan

# Problems with more partitions take the exhaustive search too long.
_MOST_PARTITIONS = 30
# Most plans are proved in few units; the others get the second number.
_UNITS = (2.0, 30.0)
_KINDS = {"varied": "varied", "unequal": "unequal", "bounds_only": "bounds"}
_KEPT, _EVERY = Path(__file__).with_suffix(".json"), 50


class Outcome(NamedTuple):
    """What one problem showed; `wrong` in words, empty where all is right."""

    tight: bool
    wrong: str
    proved: bool = True


def small(problem: PlanProblem) -> bool:
    """Whether all its partitions can be tried."""
    every = (one for choice in problem.choices for one in _partitions(problem, choice))
    return len(list(islice(every, _MOST_PARTITIONS + 1))) <= _MOST_PARTITIONS


def attack(problem: PlanProblem, bounds_only: bool = False) -> Outcome:
    """Bound and plan against the best of all partitions and orders, of all placements."""
    bound = _bound(problem)
    found = None if bounds_only else _planned(problem)
    if found is None or found.value is None:
        best = min((value for value in best_value(problem).values() if value is not None), default=None)
        if best is None:
            return Outcome(bound is None, "")
        if found is not None:
            return Outcome(False, f"no plan, and one of {best} is there")
    else:
        best = _best(problem, found.value)
        notes = [note for note in found.notes if note not in problem.notes]
        if found.value != best or notes:
            return Outcome(False, f"a plan of {found.value}, optimum {best}: {notes}")
    if bound is None or bound * problem.tick > best:
        return Outcome(False, f"a bound of {bound} ticks above the optimum {best}")
    if found is not None and found.lower_bound > best:
        return Outcome(False, f"a bound of {found.lower_bound} above the optimum {best}")
    return Outcome(bound * problem.tick == best, "", found is None or found.status is Status.OPTIMAL)


def _bound(problem: PlanProblem) -> int | None:
    """That over all partitions of all placements, in ticks; None where no partition fits."""
    limits = Limits(deterministic=_UNITS[1], workers=1)
    found = [
        Master(problem, choice).cheapest(Budget(limits, Event()), _UNITS[1]).bound
        for choice in problem.choices
        if _enough_layers(problem, choice)
    ]
    return min((bound for bound in found if bound is not None), default=None)


def _enough_layers(problem: PlanProblem, choice: Choice) -> bool:
    return len(choice.on(problem.cluster.devices).chains[0]) <= problem.model.most_stages


def _partitions(problem: PlanProblem, choice: Choice) -> Iterator[Partition]:
    return partitions(problem, choice) if _enough_layers(problem, choice) else iter(())


def _planned(problem: PlanProblem) -> Plan:
    """A plan proved optimal, in more time where there is none in little."""
    found = plan(problem, Limits(deterministic=_UNITS[0], workers=1))
    if found.status in (Status.OPTIMAL, Status.INFEASIBLE):
        return found
    return plan(problem, Limits(deterministic=_UNITS[1], workers=1))


def _best(problem: PlanProblem, known: Fraction) -> Fraction:
    """The least value of all partitions, none of which may be below this one."""
    best = known / problem.tick
    for choice, partition in ((one, made) for one in problem.choices for made in _partitions(problem, one)):
        one = problem.problem(choice, partition)
        # One below the best in whole ticks; spans may be fractions.
        at_most = ceil(best) - (best.denominator == 1)
        try:
            value = least_value(one, problem.objective, at_most)
        except NotTiny:
            exact = optimum(one, problem.objective)
            value = None if exact is None else Fraction(exact.value)
        if value is not None:
            best = min(best, value)
    return best * problem.tick


def _problems(first: int, make: Callable[[Random], PlanProblem]) -> Iterator[tuple[int, PlanProblem]]:
    for seed in range(first, 10**9):
        problem = make(Random(seed))
        if small(problem):
            yield seed, problem


def main(arguments: list[str]) -> int:
    """So many problems from a seed on; exit code 1 where one is wrong."""
    first, count = int(arguments[0]) if arguments else 0, int(arguments[1]) if len(arguments) > 1 else 1000
    tight = tried = wrong = proved = 0
    make = varied_plan if "--varied" in arguments else tiny_plan
    drawn = (lambda random: on_unequal_devices(random, make(random))) if "--unequal" in arguments else make
    for seed, problem in islice(_problems(first, drawn), count):
        outcome = attack(problem, "--bounds" in arguments)
        tried += 1
        tight += outcome.tight
        proved += outcome.proved and not outcome.wrong
        if outcome.wrong:
            wrong += 1
            print(f"seed {seed}: {outcome.wrong}", flush=True)
        if tried % _EVERY == 0 or tried == count:
            print(f"{tried} problems, up to seed {seed}: {wrong} wrong, {proved} proved", flush=True)
            run = {"first_seed": first, "last_seed": seed, "problems": tried, "wrong": wrong, "proved": proved}
            if "--keep" in arguments:
                _keep({key: f"--{flag}" in arguments for key, flag in _KINDS.items()} | run)
    print(f"{tried} problems: {wrong} wrong, {proved} proved; the bound over all partitions is the optimum in {tight}")
    return int(wrong > 0)


def _keep(run: dict[str, int | bool]) -> None:
    """Among the runs kept, in place of an earlier one of the same problems from the same seed on."""
    known = json.loads(_KEPT.read_text(encoding="utf-8")) if _KEPT.exists() else []
    same = (*_KINDS, "first_seed")
    others = [one for one in known if any(one.get(key, False) != run[key] for key in same)]
    write_whole(_KEPT, json.dumps([*others, run], indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
