"""Plans of tiny random models against every partition, recomputation and order.

The bound over all partitions must not be above the best of them, and the plan must be the best, and proved so. A plan
is there, so it is enough to look for a better one: all orders of all partitions are tried below its value. Models are
plain, varied (embedding, head and multi-token prediction, several modes of recomputation, rules and placements), each
of these on devices of unequal speed and memory, and one in five gathers parameters, reduces gradients or steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from math import ceil
from random import Random
from threading import Event
from typing import NamedTuple

from pipesched.checking.partitions.by_device import no_better_plan
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.results.plan import Plan
from pipesched.results.solution import Status
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.partitions.by_device import bound_by_device
from solver.planning.partitions.master import Master
from solver.planning.plan import plan
from tests.support.exhaustive.optimum import least, least_value
from tests.support.plan_brute_force import best_value, partitions, tiny_plan, with_parameters
from tests.support.task_brute_force import TooManyOrdersError
from tests.support.unequal_devices import on_unequal_devices
from tests.support.varied_plans import varied_plan

# Problems with more partitions take the exhaustive search too long.
_MOST_PARTITIONS = 30
# Most plans are proved in few units; the others get more.
_UNITS = (2.0, 6.0, 30.0)


class Outcome(NamedTuple):
    """Result of one problem; `wrong` in words, empty where all is right."""

    tight: bool
    wrong: str
    proved: bool = True


def small(problem: PlanProblem) -> bool:
    """True if all its partitions can be tried."""
    every = (one for choice in problem.choices for one in _partitions(problem, choice))
    return len(list(islice(every, _MOST_PARTITIONS + 1))) <= _MOST_PARTITIONS


def attack(problem: PlanProblem) -> Outcome:
    """Bound and plan against the best of all partitions and orders, of all placements."""
    bound = _bound(problem)
    found = _planned(problem)
    if found.value is None:
        best = min((value for value in best_value(problem).values() if value is not None), default=None)
        if best is None:
            return Outcome(bound is None, "")
        return Outcome(False, f"no plan, and one of {best} is there")
    best = _best(problem, found.value)
    notes = [note for note in found.notes if note not in problem.notes]
    if found.value != best or notes:
        return Outcome(False, f"a plan of {found.value}, optimum {best}: {notes}")
    if bound is None or bound * problem.tick > best:
        return Outcome(False, f"a bound of {bound} ticks above the optimum {best}")
    verified = all(no_better_plan(problem, choice, best + problem.tick / 9) for choice in problem.choices)
    if verified or found.lower_bound > best:
        return Outcome(False, f"a bound of {found.lower_bound}, or one that is verified, above the optimum {best}")
    return Outcome(bound * problem.tick == best, "", found.status is Status.OPTIMAL)


def _bound(problem: PlanProblem) -> int | None:
    """That over all partitions of all placements, in ticks; None where no partition fits."""
    limits = Limits(deterministic=_UNITS[-1], workers=1)
    found = list[int]()
    for choice in (one for one in problem.choices if _enough_layers(problem, one)):
        own = Master(problem, choice).cheapest(Budget(limits, Event()), _UNITS[-1]).bound
        found += [] if own is None else [max(own, bound_by_device(problem, choice, None, lambda: False))]
    return min(found, default=None)


def _enough_layers(problem: PlanProblem, choice: Choice) -> bool:
    return len(choice.on(problem.cluster.devices).chains[0]) <= problem.model.most_stages


def _partitions(problem: PlanProblem, choice: Choice) -> Iterator[Partition]:
    return partitions(problem, choice) if _enough_layers(problem, choice) else iter(())


def _planned(problem: PlanProblem) -> Plan:
    """A plan proved optimal, in more time where there is none in little."""
    for units in _UNITS:
        found = plan(problem, Limits(deterministic=units, workers=1))
        if found.status in (Status.OPTIMAL, Status.INFEASIBLE):
            break
    return found


def _best(problem: PlanProblem, known: Fraction) -> Fraction:
    """The least value of all partitions, none of which may be below this one."""
    best = known / problem.tick
    for choice, partition in ((one, made) for one in problem.choices for made in _partitions(problem, one)):
        one = problem.problem(choice, partition)
        # One below the best in whole ticks; spans may be fractions.
        at_most = ceil(best) - (best.denominator == 1)
        try:
            value = least_value(one, problem.objective, at_most)
        except TooManyOrdersError:
            value = least(one, problem.objective)
        if value is not None:
            best = min(best, value)
    return best * problem.tick


def compare(number: int) -> tuple[str, ...]:
    """Of the model of this number, the sorts in turn, bound and plan."""
    random = Random(number)
    problem = (varied_plan if number % 2 else tiny_plan)(random)
    problem = on_unequal_devices(random, problem) if number % 4 > 1 else problem
    problem = with_parameters(random) if number % 5 == 4 else problem
    if not small(problem):
        return ("too many partitions",)
    try:
        outcome = attack(problem)
    except TooManyOrdersError:
        return ("too many orders",)
    assert not outcome.wrong, outcome.wrong
    outcomes = {"proved": outcome.proved, "bound over all partitions attained": outcome.tight}
    return "problems", *(name for name, seen in outcomes.items() if seen)
