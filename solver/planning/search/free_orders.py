"""Search for a plan where any order is allowed: published orders, bounds, then orders for the best partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import DoesNotApply
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from solver.construction.list_scheduling import list_schedules, sequential
from solver.parameters import tunable, tuned
from solver.planning.budget import SecondsOrWork
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.first_plans import FirstPlans, begin
from solver.planning.search.joint_rounds import anneal_at_once, in_groups
from solver.planning.search.placements import Placements


@dataclass(frozen=True)
@tunable
class FreeOrderParams:
    """Shares of the time of a plan search with free orders, and the rule for the placement to search next."""

    first_share: float = tuned(0.2, "of the whole, for first plans", 0, 1)
    bounds_share: float = tuned(0.2, "of the whole, for bounds by devices", 0, 1)
    relaxing_share: float = tuned(0.2, "of the whole, for bounds over all partitions", 0, 1)
    least_bound_share: float = tuned(0.2, "of the whole, for the least bound once more", 0, 1)
    annealing_share: float = tuned(0.4, "of the whole, for partitions and orders together", 0, 1)
    least_rounds: int = tuned(3, "rounds of that, at least", 1, 100)
    step: float = tuned(0.05, "of the whole, for one order or one placement", 0, 1)
    visit_penalty: float = tuned(0.01, "of its value, for each time that a placement was searched", 0, 1)


_PARAMS = FreeOrderParams()


class FreeOrders:
    """Search for plans with free orders of passes: first plans, bounds, each placement, then all at once."""

    def __init__(self, placements: Placements) -> None:
        self._all = placements

    def run(self) -> None:
        """Search until the best plan is proved optimal or the time is over; results are kept in the placements."""
        if self._all.best is not None and self._all.done():
            return
        self._start()
        self._relax_all()
        self._visit_all()
        self._anneal()
        self._raise_bound()
        self._search()

    def _start(self) -> None:
        """Make a first plan of each placement without one, and bounds of all open placements.

        Those that were without a plan are then searched with published orders.
        """
        without = []
        for choice in self._all.without_plan():
            without.append(choice)
            self._all.say(f"{choice.choice}: a first plan")
            with self._all.defects_noted(choice):
                begin(choice, _starts())
        self._exclude_unfitting(without)
        without = [choice for choice in without if not choice.settled]
        known, among = self._all.best, self._all.open()
        for choice in among:
            most = _PARAMS.bounds_share * self._all.budget.whole / len(among)
            with self._all.defects_noted(choice):
                choice.bound_by_devices(most, None if known is None else known.value)
        each = _PARAMS.first_share * self._all.budget.whole / max(1, len(without))
        orders = {choice.choice: self._first_plans(choice, each / 2) for choice in without}
        for choice in without:
            published = next((one for one in _starts() if one in orders[choice.choice]), None)
            if published is not None and not choice.settled:
                self._all.say(f"{choice.choice}: best partition for {published.name}")
                with self._all.defects_noted(choice):
                    choice.best_of_order(choice.order_of(published.name), each / 2)

    def _exclude_unfitting(self, choices: Iterable[ChoiceSearch]) -> None:
        """Settle placements without a plan whose layers fit the memory on no partition, where that is soon proved."""
        for choice in choices:
            if choice.best is None and choice.plan.cluster.capacity is not None and not self._all.budget.over():
                self._all.say(f"{choice.choice}: is there a partition that fits?")
                self._all.relax(choice, self._all.budget.least_step)

    def _first_plans(self, choice: ChoiceSearch, most: SecondsOrWork) -> list[Heuristic]:
        """Make plans with every published order that applies, a good one first, and return those orders.

        They share `most` seconds or work units. Where none fits the memory, list schedules and one micro-batch after
        the other are tried.
        """
        self._all.say(f"{choice.choice}: first plans")
        others = [one for one in HEURISTICS if one.priorities.plan is None and not one.searched]
        orders, late, applying = [*_starts(), *others], self._all.budget.late(most), list[Heuristic]()
        for at, one in enumerate(orders):
            with self._all.defects_noted(choice):
                if not late() and choice.why_not(one.name) is None:
                    applying.append(one)
                    share = 2 if at == 0 else 2 * (len(orders) - 1)
                    FirstPlans(choice, one.name, one.order, one.same_for_all_costs).run(most / share)
        for order in (_listed, sequential):
            with self._all.defects_noted(choice):
                if choice.best is None and not choice.settled:
                    FirstPlans(choice, "pipesched", order, False).run(most)
        return applying

    def _relax_all(self) -> None:
        each = _PARAMS.relaxing_share * self._all.budget.whole / max(1, len(self._all.open()))
        for choice in self._all.open():
            self._all.say(f"{choice.choice}: bound over all partitions")
            self._all.relax(choice, each)

    def _anneal(self) -> None:
        """Search partitions and orders together: one round for each placement, then the better half, down to one."""
        left = self._all.open()
        rounds = max(_PARAMS.least_rounds, 1 + (len(left) - 1).bit_length())
        for _ in range(rounds):
            if self._all.done() or not left:
                return
            share = _PARAMS.annealing_share / rounds
            able = self._round(left, max(self._all.budget.least_step, share * self._all.budget.whole))
            left = sorted(able, key=_reached)[: max(1, -(-len(left) // 2))]

    def _round(self, choices: list[ChoiceSearch], most: SecondsOrWork) -> list[ChoiceSearch]:
        """Run joint searches on `choices` for `most` seconds or work units.

        Returns those that the joint search supports.
        """
        able = []
        for group in in_groups(choices, self._all.budget.workers):
            if not self._all.done():
                self._all.say(f"{group[0][0].choice}: partitions and orders together")
                share = most * len({choice.choice for choice, _ in group}) / len(choices)
                with self._all.defects_noted(group[0][0]):
                    able += anneal_at_once(group, self._all.better, self._all.budget, share)
        return list(dict.fromkeys(able))

    def _raise_bound(self) -> None:
        """Improve the least bound of all placements with more time, then the next least, within a share of the time."""
        budget = self._all.budget
        until = budget.left - _PARAMS.least_bound_share * budget.whole
        while not self._all.done() and budget.left > until:
            left = [each for each in self._all.open() if not each.bound_is_final]
            if not left:
                return
            choice = min(left, key=lambda each: each.bound or 0)
            self._all.say(f"{choice.choice}: bound over all partitions")
            self._all.relax(choice, budget.left - until)

    def _visit_all(self) -> None:
        """Search an order for one partition of each placement, which proves small problems optimal."""
        each = max(self._all.budget.least_step, _PARAMS.step * self._all.budget.whole / max(1, len(self._all.open())))
        for choice in sorted(self._all.open(), key=lambda choice: choice.stages):
            if not self._all.done():
                self._visit(choice, each)

    def _search(self) -> None:
        """Alternate, until done, between orders for further partitions and improvements of the best plan."""
        step, turn = max(self._all.budget.least_step, _PARAMS.step * self._all.budget.whole), 0
        while not self._all.done():
            turn += 1
            if self._all.best is not None and turn % 3 == 1:
                self._round([self._owner()], step * 2)
            elif self._all.best is not None and turn % 3:
                self._improve(step * 2)
            else:
                self._visit(min(self._all.open(), key=_promise), step)

    def _visit(self, choice: ChoiceSearch, most: SecondsOrWork) -> None:
        """Search an order for the next partition of a placement, which the master problem gives if there is none yet.

        At most `most` seconds or work units for each of the two.
        """
        if choice.next is None:
            self._all.relax(choice, most)
        if choice.next is not None and not choice.settled and not self._all.done():
            self._all.say(f"{choice.choice}: order for a partition")
            with self._all.defects_noted(choice):
                choice.visit(most)

    def _improve(self, most: SecondsOrWork) -> None:
        best, owner = self._all.best, self._owner()
        assert best is not None
        self._all.say(f"{best.choice}: a better order for the best partition")
        with self._all.defects_noted(owner):
            self._all.better[owner.choice].improve(most)

    def _owner(self) -> ChoiceSearch:
        """Return the search of the placement that has the best plan."""
        return next(each for each in self._all.choices if each.best is self._all.best)


def _listed(problem: Problem) -> Schedule:
    """Return a list schedule; raises `DoesNotApply` if nothing fits the memory or every list policy deadlocks."""
    if why_infeasible(problem) is not None:
        raise DoesNotApply("nothing fits the memory")
    found = next(list_schedules(problem), None)
    if found is None:
        raise DoesNotApply("every policy of list scheduling locks itself out")
    return found


def _reached(choice: ChoiceSearch) -> float:
    """Return the value of the placement's best plan in the file's unit; infinite if it has none."""
    return float("inf") if choice.best is None else float(choice.best.value)


def _promise(choice: ChoiceSearch) -> tuple[float, int]:
    """Return the key by which to choose the next placement: good value or bound, with a penalty for each visit.

    It is (value or bound in ticks, raised by that penalty, and number of visits), the least first.
    """
    value = choice.bound if choice.best is None else choice.best.value / choice.plan.tick
    visits = sum(choice.visits.values())
    return float(value or 0) * (1 + _PARAMS.visit_penalty * visits), visits


def _starts() -> list[Heuristic]:
    """Return the published orders that make good first plans and whose best partition is soon proved, best first."""
    places = [(one.priorities.plan, one) for one in HEURISTICS if one.priorities.plan is not None]
    return [one for _, one in sorted(places, key=lambda place: place[0])]
