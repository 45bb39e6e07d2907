"""The search for a plan where the order is free: published orders, bounds, then orders for the best partitions."""

from __future__ import annotations

from dataclasses import dataclass

from heuristics.catalogue import HEURISTICS, Heuristic
from pipesched.errors import DoesNotApply
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from solver.construction.list_scheduling import list_schedules, sequential
from solver.parameters import tunable, tuned
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.first_plans import FirstPlans, begin
from solver.planning.search.joint_rounds import anneal_at_once, in_groups
from solver.planning.search.placements import Placements


@dataclass(frozen=True)
@tunable
class FreeOrderParams:
    """Time of a plan search with free orders, in shares of the whole."""

    first_share: float = tuned(0.2, "of the whole, for first plans", 0, 1)
    bounds_share: float = tuned(0.2, "of the whole, for bounds by devices", 0, 1)
    relaxing_share: float = tuned(0.2, "of the whole, for bounds over all partitions", 0, 1)
    raising_share: float = tuned(0.2, "of the whole, for the least bound once more", 0, 1)
    annealing_share: float = tuned(0.4, "of the whole, for partitions and orders together", 0, 1)
    least_rounds: int = tuned(3, "rounds of that, at least", 1, 100)
    step: float = tuned(0.05, "of the whole, for one order or one placement", 0, 1)
    visit_penalty: float = tuned(0.01, "of its value, for each time that a placement was searched", 0, 1)


_PARAMS = FreeOrderParams()


class FreeOrders:
    """The parts of the search, in turn."""

    def __init__(self, placements: Placements) -> None:
        self._all = placements

    def run(self) -> None:
        """Until nothing is left to search, or the time is over."""
        if self._all.best is not None and self._all.done():
            return
        self._start()
        self._relax_all()
        self._visit_all()
        self._anneal()
        self._raise_bound()
        self._search()

    def _start(self) -> None:
        """First plans of every placement that has none yet; then for a published order its best partition."""
        without = []
        for choice in self._all.without_plan():
            without.append(choice)
            self._all.say(f"{choice.choice}: a first plan")
            with self._all.defects_noted(choice):
                begin(choice, _starts())
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

    def _first_plans(self, choice: ChoiceSearch, most: float) -> list[Heuristic]:
        """With every published order that applies, a good start first; returns these. Where none fits, any order."""
        self._all.say(f"{choice.choice}: first plans")
        rest = [one for one in HEURISTICS if one.standing.plan is None and not one.searched]
        orders, late, applying = [*_starts(), *rest], self._all.budget.late(most), list[Heuristic]()
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
        """Partitions and orders together, a round for each placement; then again for the better half, down to one."""
        left = self._all.open()
        rounds = max(_PARAMS.least_rounds, 1 + (len(left) - 1).bit_length())
        for _ in range(rounds):
            if self._all.done() or not left:
                return
            share = _PARAMS.annealing_share / rounds
            able = self._round(left, max(self._all.budget.least_step, share * self._all.budget.whole))
            left = sorted(able, key=_reached)[: max(1, -(-len(left) // 2))]

    def _round(self, choices: list[ChoiceSearch], most: float) -> list[ChoiceSearch]:
        """So many seconds or units for these placements; those of them that partitions and orders can be changed on."""
        able = []
        for group in in_groups(choices, self._all.budget.workers):
            if not self._all.done():
                self._all.say(f"{group[0][0].choice}: partitions and orders together")
                share = most * len({choice.choice for choice, _ in group}) / len(choices)
                with self._all.defects_noted(group[0][0]):
                    able += anneal_at_once(group, self._all.better, self._all.budget, share)
        return list(dict.fromkeys(able))

    def _raise_bound(self) -> None:
        """The least bound once more, for longer and below a better plan; then the next, while the share lasts."""
        budget = self._all.budget
        until = budget.left - _PARAMS.raising_share * budget.whole
        while not self._all.done() and budget.left > until:
            left = [each for each in self._all.open() if not each.bound_is_final]
            if not left:
                return
            choice = min(left, key=lambda each: each.bound or 0)
            self._all.say(f"{choice.choice}: bound over all partitions")
            self._all.relax(choice, budget.left - until)

    def _visit_all(self) -> None:
        """An order for a partition of each placement: small problems are proved so."""
        each = max(self._all.budget.least_step, _PARAMS.step * self._all.budget.whole / max(1, len(self._all.open())))
        for choice in sorted(self._all.open(), key=lambda choice: choice.stages):
            if not self._all.done():
                self._visit(choice, each)

    def _search(self) -> None:
        """Orders for more partitions, in turn with better partitions and orders for the best plan."""
        step, turn = max(self._all.budget.least_step, _PARAMS.step * self._all.budget.whole), 0
        while not self._all.done():
            turn += 1
            if self._all.best is not None and turn % 3 == 1:
                self._round([self._owner()], step * 2)
            elif self._all.best is not None and turn % 3:
                self._improve(step * 2)
            else:
                self._visit(min(self._all.open(), key=_promise), step)

    def _visit(self, choice: ChoiceSearch, most: float) -> None:
        """An order for the next partition of a placement."""
        if choice.next is None:
            self._all.relax(choice, most)
        if choice.next is not None and not choice.settled and not self._all.done():
            self._all.say(f"{choice.choice}: order for a partition")
            with self._all.defects_noted(choice):
                choice.visit(most)

    def _improve(self, most: float) -> None:
        best, owner = self._all.best, self._owner()
        assert best is not None
        self._all.say(f"{best.choice}: a better order for the best partition")
        with self._all.defects_noted(owner):
            self._all.better[owner.choice].improve(most)

    def _owner(self) -> ChoiceSearch:
        """The placement of the best plan."""
        return next(each for each in self._all.choices if each.best is self._all.best)


def _listed(problem: Problem) -> Schedule:
    """A list schedule; `DoesNotApply` where the memory has no room for any."""
    if why_infeasible(problem) is not None:
        raise DoesNotApply("nothing fits the memory")
    found = next(list_schedules(problem), None)
    if found is None:
        raise DoesNotApply("every policy of list scheduling locks itself out")
    return found


def _reached(choice: ChoiceSearch) -> float:
    """The value of its best plan, where it has one."""
    return float("inf") if choice.best is None else float(choice.best.value)


def _promise(choice: ChoiceSearch) -> tuple[float, int]:
    """Where to look next: where plans are good, or may be, and where little was looked at."""
    value = choice.bound if choice.best is None else choice.best.value / choice.plan.tick
    visits = sum(choice.visits.values())
    return float(value or 0) * (1 + _PARAMS.visit_penalty * visits), visits


def _starts() -> list[Heuristic]:
    """Published orders whose best partition is soon proved and a good start, the best first."""
    places = [(one.standing.plan, one) for one in HEURISTICS if one.standing.plan is not None]
    return [one for _, one in sorted(places, key=lambda place: place[0])]
