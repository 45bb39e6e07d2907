"""Search for a plan where only published orders are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from heuristics.catalogue import schedule_named
from pipesched.layers.plan_problem import Choice
from pipesched.results.gap import gap
from solver.parameters import tunable, tuned
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.first_plans import begin
from solver.planning.search.fixed_order import FixedOrder, provable
from solver.planning.search.placements import Placements
from solver.planning.search.published_climb import PublishedClimb


@dataclass(frozen=True)
@tunable
class PublishedOrderParams:
    """Shares of the time of a plan search with published orders."""

    first_share: float = tuned(0.2, "of the whole, for first plans", 0, 1)
    relaxing_share: float = tuned(0.2, "of the whole, for bounds over all partitions and orders", 0, 1)
    step: float = tuned(0.05, "of the whole, for one order", 0, 1)


_PARAMS = PublishedOrderParams()


class _Order(NamedTuple):
    """A published order on a placement where its critical paths bound all partitions, with the search that uses them.

    The order is independent of the costs.
    """

    choice: ChoiceSearch
    name: str
    search: FixedOrder


class PublishedOrders:
    """Search for the best plan where only published orders are allowed.

    Orders that do not depend on the costs are proved one by one; the others use the bound over all partitions and
    orders.
    """

    def __init__(self, placements: Placements) -> None:
        self._all = placements

    def run(self) -> None:
        """Search all orders on all placements in turn, so that none uses up the time of the others."""
        allowed = [schedule_named(name) for name in self._all.problem.schedules]
        for choice in self._all.without_plan():
            self._all.say(f"{choice.choice}: a first plan")
            with self._all.defects_noted(choice):
                reason = begin(choice, allowed)
                if reason:
                    choice.no_plan(reason)
        if self._all.done():
            return
        names: dict[Choice, list[str]] = {}
        for choice in self._all.open():
            with self._all.defects_noted(choice):
                names[choice.choice] = [one.name for one in allowed if choice.why_not(one.name) is None]
        climbs = self._begin(names)
        sure = [
            _Order(choice, name, FixedOrder(choice.plan, choice.choice, choice.order_of(name)))
            for choice in self._all.open()
            for name in names.get(choice.choice, ())
            if schedule_named(name).same_for_all_costs and provable(choice.plan, choice.choice)
        ]
        number = {choice: sum(one.choice.choice == choice for one in sure) for choice in names}
        whole = [one for one in sure if number[one.choice.choice] == len(names[one.choice.choice])]
        self._search_partitions(sure, whole)
        for choice in self._all.open():
            if number.get(choice.choice, 0) < len(names.get(choice.choice, ())):
                self._search_cost_dependent(choice, names[choice.choice], climbs[choice.choice])

    def _begin(self, names: dict[Choice, list[str]]) -> dict[Choice, list[PublishedClimb]]:
        """Make the first plans of all orders on all placements; return the local searches of each placement.

        `names` are the orders that apply to a placement; its local searches have the same order.
        """
        climbs: dict[Choice, list[PublishedClimb]] = {}
        each = _PARAMS.first_share * self._all.budget.whole / max(1, sum(map(len, names.values())))
        for choice in self._all.open():
            climbs[choice.choice] = [PublishedClimb(choice, name) for name in names.get(choice.choice, ())]
            for climb in climbs[choice.choice]:
                if not self._all.budget.over():
                    with self._all.defects_noted(choice):
                        climb.begin(each)
        return climbs

    def _search_partitions(self, orders: list[_Order], whole: list[_Order]) -> None:
        """Search the best partition of each order in rounds, whose orders share half of the time left equally.

        A round has the orders that may still give a better plan; one alone gets all the time, after the first round.
        `whole` are those of `orders` whose placements have all their allowed orders there: the least of their bounds
        is the placement's bound. After the first round unproved placements also get, once, a bound over any order,
        which rises sooner although not as far.
        """
        relaxed = False
        while left := [one for one in orders if self._may_be_better(one)]:
            remaining = self._all.budget.left
            each = (
                remaining if relaxed and len(left) == 1 else max(self._all.budget.least_step, remaining / 2 / len(left))
            )
            for one in left:
                if self._all.budget.over():
                    return
                self._all.say(f"{one.choice.choice}: best partition for {one.name}")
                with self._all.defects_noted(one.choice):
                    one.choice.go_on(one.search, each)
                    own = [other.search for other in whole if other.choice is one.choice]
                    if own:
                        bounds = [search.bound for search in own if search.bound is not None]
                        one.choice.proved(bounds, [search.evidence for search in own])

            if not relaxed:
                relaxed = True
                self._relax_all([one.choice for one in left if not one.search.proved])

    def _relax_all(self, choices: list[ChoiceSearch]) -> None:
        left = list(dict.fromkeys(choices))
        for choice in left:
            if not choice.settled and not self._all.done():
                self._all.say(f"{choice.choice}: bound over all partitions and orders")
                self._all.relax(choice, _PARAMS.relaxing_share * self._all.budget.whole / len(left))

    def _may_be_better(self, one: _Order) -> bool:
        """True if further search for the best partition of an order may give a plan better than the best one known.

        False, too, once the order is proved, its placement settled, or the time over.
        """
        bound, best = one.search.bound, self._all.best
        if one.choice not in self._all.open() or bound is None or one.search.proved or self._all.budget.over():
            return False
        if best is None:
            return True
        value = best.value / self._all.problem.tick
        return bound < value and gap(value, Fraction(bound)) > self._all.limits.gap

    def _search_cost_dependent(self, choice: ChoiceSearch, names: list[str], climbs: list[PublishedClimb]) -> None:
        """Search a placement with orders that depend on the costs: local search, and partitions of least bound.

        `climbs` are the local searches, one for each of `names`.
        """
        step = max(self._all.budget.least_step, _PARAMS.step * self._all.budget.whole)
        while not self._all.done() and choice in self._all.open():
            self._all.relax(choice, step)
            if choice.settled:
                return
            self._all.say(f"{choice.choice}: {', '.join(names)}")
            if choice.next is not None:
                with self._all.defects_noted(choice):
                    choice.visit_published(names)
            for climb in climbs:
                if not self._all.done():
                    with self._all.defects_noted(choice):
                        climb.run(step)
