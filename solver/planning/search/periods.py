"""Search for the plan of least period: partitions in the order of their bounds, each with the best pattern for it."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.errors import BadInput
from solver.parameters import tunable, tuned
from solver.planning.budget import SecondsOrWork
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.placements import Placements


@dataclass(frozen=True)
@tunable
class PeriodPlanParams:
    """Shares of the time of a plan search for the least period."""

    step: float = tuned(0.05, "of the whole, for one pattern or one bound over all partitions", 0, 1)


_PARAMS = PeriodPlanParams()


class Periods:
    """Search for the plan of least period: the placement of least bound is searched next.

    A partition whose pattern is not proved the best is left out with the bound proved for it, so that others of the
    same bound are looked at too. Raises `BadInput` where only published orders are allowed.
    """

    def __init__(self, placements: Placements) -> None:
        self._all = placements
        if placements.problem.schedules:
            raise BadInput("objective: found period where only published schedules are allowed; allowed: any order")

    def run(self) -> None:
        """Search until no better plan is possible or the time is over."""
        budget = self._all.budget
        step = max(budget.least_step, _PARAMS.step * budget.whole)
        for choice in self._all.without_plan():
            self._visit(choice, step)
        while not self._all.done():
            self._visit(min(self._all.open(), key=_least), step)
        self._again()

    def _visit(self, choice: ChoiceSearch, most: SecondsOrWork) -> None:
        """Search a pattern for the partition of a placement that has the least bound.

        The bound and the search take at most `most` seconds or work units each.
        """
        self._all.say(f"{choice.choice}: bound over all partitions")
        self._all.relax(choice, most)
        if choice.next is not None and not choice.settled:
            self._all.say(f"{choice.choice}: order for a partition")
            with self._all.defects_noted(choice):
                choice.visit(most)

    def _again(self) -> None:
        """Search longer for patterns of the partitions left out whose bound is below the best plan."""
        budget = self._all.budget
        left = [(lower, choice, partition) for choice in self._all.choices for partition, lower in choice.left_open()]
        for lower, choice, partition in sorted(left, key=lambda one: one[0]):
            if self._all.best is not None and lower < self._all.best.value / choice.plan.tick and not budget.over():
                self._all.say(f"{choice.choice}: a better order for a partition")
                with self._all.defects_noted(choice):
                    choice.offer_solved(partition, choice.solve(partition, budget.left))


def _least(choice: ChoiceSearch) -> float:
    """Return the bound of a placement in ticks, by which the next is chosen; infinite where it has no plan."""
    return float("inf") if choice.bound is None else float(choice.bound)
