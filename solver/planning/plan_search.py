"""The search for a plan over all placements, around the best plan of any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from threading import Event

from heuristics.catalogue import HEURISTICS
from pipesched.errors import Disagreement, defect_note
from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.gap import gap
from pipesched.results.plan import Candidate
from pipesched.results.plan_evidence import OrderPaths
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.choice_search import ChoiceSearch
from solver.planning.fixed_order import provable
from solver.planning.joint_rounds import anneal_at_once, in_groups
from solver.planning.progress import PlanProgress, Report

# Published orders that are the same for all costs: the best partition for one is soon proved, and a good start.
_STARTS = ("1f1b", "interleaved-1f1b", "hanayo", "zb-h1", "gpipe")
_START_SHARE = 0.1
_BOUND_SHARE = 0.25
_FIRST_SHARE = 0.08
_JOINT_SHARE = 0.4
_AGAIN_SHARE = 0.15
_LEAST_ROUNDS = 3
_STEP_SHARE = 0.05
_LEAST_STEP = 0.2


class PlanSearch:
    """All placements of a plan problem, around the best plan of any."""

    def __init__(self, problem: PlanProblem, limits: Limits, report: Report, stop: Event) -> None:
        self.problem, self.limits, self._report = problem, limits, report
        self.budget = Budget(limits, stop)
        self.best: Candidate | None = None
        self.notes = list(problem.notes)
        self._phase = "start"
        for name in problem.schedules:
            HEURISTICS[name]
        self.choices = [ChoiceSearch(problem, choice, self.budget, self._offer) for choice in problem.choices]

    @property
    def bound(self) -> Fraction | None:
        """No plan is below so many ticks; None where there is none at all."""
        bounds = [each.bound for each in self.choices if each.bound is not None]
        if self.best is not None:
            bounds.append(self.best.value / self.problem.tick)
        return min(bounds, default=None)

    def start_from(self, known: Candidate) -> None:
        """Offer a plan of a problem that may have other costs."""
        for each in self.choices:
            if each.choice == known.choice and not each.settled:
                timeline = best_times(self.problem.problem(known.choice, known.partition), known.timeline.schedule)
                each.offer(Candidate(known.choice, known.partition, timeline, known.schedule))

    def run(self) -> None:
        """Published orders first; then, unless those alone are allowed, bounds, and orders for the best partitions."""
        if self.problem.schedules:
            self._published()
        else:
            self._start()
            self._relax_all()
            self._visit_all()
            self._anneal()
            self._raise_bound()
            self._search()

    def _open(self) -> list[ChoiceSearch]:
        return [each for each in self.choices if not each.settled]

    def _start(self) -> None:
        """A published order with its best partition on every placement."""
        each = _START_SHARE * self.budget.whole / max(1, len(self._open()))
        for choice in self._open():
            names = [name for name in _STARTS if choice.why_not(name) is None]
            for name in names[:1]:
                self._say(f"{choice.choice}: best partition for {name}")
                with self._defects_noted(choice):
                    choice.best_of_order(choice.order_of(name), each)

    def _relax_all(self) -> None:
        each = _BOUND_SHARE * self.budget.whole / max(1, len(self._open()))
        for choice in self._open():
            self._say(f"{choice.choice}: bound over all partitions")
            self._relax(choice, each)

    def _anneal(self) -> None:
        """Partitions and orders together, a round for each placement; then again for the better half, down to one."""
        left = self._open()
        rounds = max(_LEAST_ROUNDS, 1 + (len(left) - 1).bit_length())
        for _ in range(rounds):
            if self._done() or not left:
                return
            able = self._round(left, max(_LEAST_STEP, _JOINT_SHARE * self.budget.whole / rounds))
            left = sorted(able, key=_reached)[: max(1, -(-len(left) // 2))]

    def _round(self, choices: list[ChoiceSearch], most: float) -> list[ChoiceSearch]:
        """So many seconds or units for these placements; those of them that partitions and orders can be changed on."""
        able = []
        for group in in_groups(choices, self.budget.workers):
            if not self._done():
                self._say(f"{group[0][0].choice}: partitions and orders together")
                share = most * len({choice.choice for choice, _ in group}) / len(choices)
                able += anneal_at_once(group, self.budget, share)
        return list(dict.fromkeys(able))

    def _raise_bound(self) -> None:
        """The least bound once more, for longer and below a better plan."""
        if self._open() and not self._done():
            choice = min(self._open(), key=lambda each: each.bound or 0)
            if not choice.bound_is_final:
                self._say(f"{choice.choice}: bound over all partitions")
                self._relax(choice, _AGAIN_SHARE * self.budget.whole)

    def _visit_all(self) -> None:
        """An order for a partition of each placement: small problems are proved so."""
        each = max(_LEAST_STEP, _FIRST_SHARE * self.budget.whole / max(1, len(self._open())))
        for choice in sorted(self._open(), key=lambda choice: choice.stages):
            if not self._done():
                self._visit(choice, each)

    def _search(self) -> None:
        """Orders for more partitions, in turn with better partitions and orders for the best plan."""
        step, turn = max(_LEAST_STEP, _STEP_SHARE * self.budget.whole), 0
        while not self._done():
            turn += 1
            if self.best is not None and turn % 3 == 1:
                self._round([self._owner()], step * 2)
            elif self.best is not None and turn % 3:
                self._improve(step * 2)
            else:
                self._visit(min(self._open(), key=_promise), step)

    def _visit(self, choice: ChoiceSearch, most: float) -> None:
        """An order for the next partition of a placement."""
        if choice.next is None:
            self._relax(choice, most)
        if choice.next is not None and not choice.settled and not self._done():
            self._say(f"{choice.choice}: order for a partition")
            choice.visit(most)

    def _improve(self, most: float) -> None:
        best, owner = self.best, self._owner()
        assert best is not None
        self._say(f"{best.choice}: a better order for the best partition")
        with self._defects_noted(owner):
            owner.improve(most)

    def _owner(self) -> ChoiceSearch:
        """The placement of the best plan."""
        return next(each for each in self.choices if each.best is self.best)

    def _relax(self, choice: ChoiceSearch, most: float) -> None:
        with self._defects_noted(choice):
            choice.relax(most, None if self.best is None else self.best.value)

    @contextmanager
    def _defects_noted(self, choice: ChoiceSearch) -> Iterator[None]:
        """A bound above a plan ends what is under way, is noted, and all bounds of the placement are left out."""
        try:
            yield
        except Disagreement as defect:
            self.notes.append(defect_note(str(defect)))
            choice.distrust()

    def _published(self) -> None:
        """Only these orders: each proved by itself where it is the same for all costs, else below the bound of any."""
        for choice in self._open():
            names = [name for name in self.problem.schedules if choice.why_not(name) is None]
            if not names:
                choice.no_plan(f"no schedule applies: {choice.why_not(self.problem.schedules[0])}")
                continue
            sure = [n for n in names if HEURISTICS[n].same_for_all_costs and provable(self.problem, choice.choice)]
            bounds: list[int] = []
            evidence: list[OrderPaths] = []
            for name in sure:
                self._say(f"{choice.choice}: best partition for {name}")
                with self._defects_noted(choice):
                    found = choice.best_of_order(choice.order_of(name), self.budget.left)
                    bounds += [] if found.bound is None else [found.bound]
                    evidence.append(found.evidence)
            if choice.settled:
                continue
            if len(sure) == len(names):
                choice.proved(bounds, evidence)
            else:
                self._costly(choice, names)

    def _costly(self, choice: ChoiceSearch, names: list[str]) -> None:
        """Where the order of some depends on the costs: all of them on the partitions of the least bounds, in turn."""
        step = max(_LEAST_STEP, _STEP_SHARE * self.budget.whole)
        while not self._done() and not choice.settled:
            self._relax(choice, step)
            if choice.next is None:
                return
            self._say(f"{choice.choice}: {', '.join(names)}")
            choice.visit_published(names)

    def _done(self) -> bool:
        bound = self.bound
        if self.budget.over() or not self._open() or bound is None:
            return True
        if self.best is None:
            return False
        value = self.best.value / self.problem.tick
        return bound >= value or gap(value, bound) <= self.limits.gap

    def _offer(self, candidate: Candidate) -> None:
        """A plan of some placement; one below its bound shows that the bound is wrong."""
        value = candidate.value / self.problem.tick
        for each in self.choices:
            if each.choice == candidate.choice and each.bound is not None and each.bound > value:
                self.notes.append(
                    defect_note(f"{each.choice}: a bound of {each.bound} ticks is above a plan of {value}")
                )
                each.distrust()
        if self.best is None or candidate.value < self.best.value:
            self.best = candidate
            self._say(self._phase)

    def _say(self, phase: str) -> None:
        self._phase = phase
        bound = self.bound
        self._report(
            PlanProgress(
                self.budget.seconds,
                None if self.best is None else self.best.value,
                Fraction(0) if bound is None else bound * self.problem.tick,
                sum(each.settled for each in self.choices),
                len(self.choices),
                phase,
            )
        )


def _reached(choice: ChoiceSearch) -> float:
    """The value of its best plan, where it has one."""
    return float("inf") if choice.best is None else float(choice.best.value)


def _promise(choice: ChoiceSearch) -> tuple[float, int]:
    """Where to look next: where plans are good, or may be, and where little was looked at."""
    value = choice.bound if choice.best is None else choice.best.value / choice.plan.tick
    visits = sum(choice.visits.values())
    return float(value or 0) * (1 + 0.01 * visits), visits
