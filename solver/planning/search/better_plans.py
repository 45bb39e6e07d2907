"""Better plans of one placement from its best one: other cuts for its order, other orders, and both together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from pipesched.problem.feasibility import why_infeasible
from pipesched.results.plan import Candidate
from solver.construction.list_scheduling import list_schedules
from solver.construction.timing import best_times
from solver.parameters import tunable, tuned
from solver.planning.joint.search import JointSearch, applies, kernels_ready
from solver.planning.partitions.nearby import nearby
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.fixed_order import provable


@dataclass(frozen=True)
@tunable
class BetterPlansParams:
    """Better plans of one placement from its best one."""

    list_schedules: int = tuned(6, "list schedules of the first partition", 1, 100)
    cuts_share: float = tuned(0.3, "of a step, for other cuts of the best order", 0, 1)


_PARAMS = BetterPlansParams()


class BetterPlans:
    """Of one placement; what is found is offered there."""

    def __init__(self, placement: ChoiceSearch) -> None:
        self._of = placement
        self._joint: dict[int, JointSearch] = {}
        self._refitted: Candidate | None = None  # whose order has its best partition

    def improve(self, most: float) -> None:
        """A better partition for the order of the best plan, or else a better order for its partition."""
        assert self._of.best is not None
        best = self._of.best
        if self._refitted is not best:
            self._move_cuts(most)
            if self._of.best is best and provable(self._of.plan, self._of.choice):
                self._of.best_of_order(best.timeline.schedule, most * _PARAMS.cuts_share)
            self._refitted = self._of.best
        if self._of.best is best and not self._of.budget.over():
            self._of.offer_solved(best.partition, self._of.solve(best.partition, most))

    def joint(self, number: int) -> JointSearch | None:
        """One of the searches over partitions and orders together, made when it is first asked for; None: no start."""
        if number not in self._joint:
            start = self._of.best if self._of.best is not None else self._listed()
            if start is None or not applies(start) or not kernels_ready(start, self._of.budget.over):
                return None
            self._joint[number] = JointSearch(
                self._of.plan, self._of.choice, start, True, self._of.budget.limits.seed + number
            )
        return self._joint[number]

    def _listed(self) -> Candidate | None:
        """The best of a few list schedules of the first partition."""
        problem, found = self._of.plan.problem(self._of.choice, self._of.first), list[Candidate]()
        if why_infeasible(problem) is not None:
            return None
        for schedule in islice(list_schedules(problem), _PARAMS.list_schedules):
            found.append(Candidate(self._of.choice, self._of.first, best_times(problem, schedule), "pipesched"))
            if self._of.budget.over():
                break
        best = min(found, key=lambda each: each.value, default=None)
        return best if best is not None and self._of.offer(best) else None

    def _move_cuts(self, most: float) -> None:
        """The same order on partitions next to the best, as long as one of them is better."""
        assert self._of.best is not None
        before, tries = None, self._of.budget.tries(most)
        while self._of.best is not before:
            before = self._of.best
            for partition in nearby(self._of.plan, before.partition):
                if not next(tries, False):
                    return
                problem = self._of.plan.problem(self._of.choice, partition)
                timeline = best_times(problem, before.timeline.schedule)
                candidate = Candidate(self._of.choice, partition, timeline, before.schedule)
                if candidate.value < self._of.best.value:
                    self._of.offer(candidate)
