"""Improve the best plan of one placement: other cuts for its order, other orders, and both together."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from pipesched.errors import Deadlock
from pipesched.problem.feasibility import why_infeasible
from pipesched.results.plan import PlanCandidate
from solver.construction.list_scheduling import list_schedules
from solver.construction.timing import best_times, retimed
from solver.parameters import tunable, tuned
from solver.planning.budget import SecondsOrWork
from solver.planning.joint.search import JointSearch, applies, kernels_ready
from solver.planning.partitions.nearby import nearby
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.fixed_order import provable


@dataclass(frozen=True)
@tunable
class BetterPlansParams:
    """Limits of the search that improves a placement's best plan: list schedules, and time for other cuts."""

    list_schedules: int = tuned(6, "list schedules of the first partition", 1, 100)
    cuts_share: float = tuned(0.3, "of a step, for other cuts of the best order", 0, 1)


_PARAMS = BetterPlansParams()


class BetterPlans:
    """Improvements of one placement's best plan; each plan found is offered to the placement's search."""

    def __init__(self, placement: ChoiceSearch) -> None:
        self._of = placement
        self._joint: dict[int, JointSearch] = {}
        self._refitted: PlanCandidate | None = None  # whose order has its best partition

    def improve(self, most: SecondsOrWork) -> None:
        """Search a better partition for the best plan's order or, if there is none, a better order for its partition.

        The placement must have a plan.
        """
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
        """Return joint search number `number` (from 0) of the placement, created on first use from the best plan.

        Each has its own random seed. Without a plan it starts from list schedules. None if there is no such start, the
        joint search does not support it, or the compiled code is not ready in time.
        """
        if number not in self._joint:
            start = self._of.best if self._of.best is not None else self._listed()
            if start is None or not applies(start) or not kernels_ready(start, self._of.budget.over):
                return None
            self._joint[number] = JointSearch(
                self._of.plan, self._of.choice, start, True, self._of.budget.limits.seed + number
            )
        return self._joint[number]

    def _listed(self) -> PlanCandidate | None:
        """Return the best of a few list schedules of the first partition, which is offered; None if it is not valid."""
        problem, found = self._of.plan.problem(self._of.choice, self._of.first), list[PlanCandidate]()
        if why_infeasible(problem) is not None:
            return None
        for schedule in islice(list_schedules(problem), _PARAMS.list_schedules):
            with suppress(Deadlock):
                found.append(PlanCandidate(self._of.choice, self._of.first, best_times(problem, schedule), "pipesched"))
            if self._of.budget.over():
                break
        best = min(found, key=lambda each: each.value, default=None)
        return best if best is not None and self._of.offer(best) else None

    def _move_cuts(self, most: SecondsOrWork) -> None:
        """Simulate the best plan's order on adjacent partitions for `most` seconds, and go on from each better one.

        Where work is counted `most` is in work units.
        """
        assert self._of.best is not None
        before, tries = None, self._of.budget.tries(most)
        while self._of.best is not before:
            before = self._of.best
            for partition in nearby(self._of.plan, before.partition):
                if not next(tries, False):
                    return
                problem = self._of.plan.problem(self._of.choice, partition)
                timeline = retimed(problem, before.timeline)
                if timeline is None:
                    continue
                candidate = PlanCandidate(self._of.choice, partition, timeline, before.schedule)
                if candidate.value < self._of.best.value:
                    self._of.offer(candidate)
