"""Search partitions for a published schedule whose order depends on the costs: adjacent partitions and annealing."""

from __future__ import annotations

from heuristics.building.patience import patience
from heuristics.catalogue import schedule_named
from pipesched.layers.partition import Partition
from pipesched.results.plan import PlanCandidate
from solver.planning.budget import SecondsOrWork
from solver.planning.joint.search import JointSearch, applies
from solver.planning.partitions.nearby import nearby
from solver.planning.search.choice_search import ChoiceSearch
from solver.planning.search.first_plans import FirstPlans, timed


class PublishedClimb:
    """Local search over partitions on one placement, that of the search `of`, for the published schedule `name`.

    Each plan has the order that the schedule makes for its own costs. Plans found are offered to `of`. Raises
    `BadInput` for an unknown name.
    """

    def __init__(self, of: ChoiceSearch, name: str) -> None:
        self._of, self._name, self._published = of, name, schedule_named(name)
        self._best: PlanCandidate | None = None
        self._looked: set[Partition] = set()
        self._seed = of.budget.limits.seed

    def begin(self, most: SecondsOrWork) -> None:
        """Make first plans of the published schedule, within `most` seconds or units of counted work.

        A schedule may reorder another one (`Heuristic.improves`), as a cost-aware ZBV does. Then plans are made for the
        other one first, and this order is tried on the best partition found.
        """
        late, first = self._of.budget.late(most), schedule_named(self._published.improves or self._name)
        self._best = FirstPlans(self._of, first.name, first.order, first.same_for_all_costs).run(most)
        if first is not self._published and self._best is not None and not late():
            with patience(late):
                self._look(self._best.partition)

    def run(self, most: SecondsOrWork) -> None:
        """Search for `most` seconds or work units: adjacent partitions, then annealing with the best plan's order.

        It starts from the best plan of the schedule found so far, here or in the search `of`; without one nothing is
        done.
        """
        if self._best is None and self._of.best is not None and self._of.best.schedule == self._name:
            self._best = self._of.best
        if self._best is None:
            return
        with patience(self._of.budget.late(most)):
            self._step_by_step(most / 2)
            self._anneal(most / 2)

    def _step_by_step(self, most: SecondsOrWork) -> None:
        tries, before = self._of.budget.tries(most), None
        while self._best is not before and self._best is not None:
            before = self._best
            for partition in nearby(self._of.plan, before.partition):
                if partition in self._looked:
                    continue
                if not next(tries, False):
                    return
                self._look(partition)

    def _anneal(self, most: SecondsOrWork) -> None:
        assert self._best is not None
        if self._of.budget.over() or not applies(self._best):
            return
        search = JointSearch(self._of.plan, self._of.choice, self._best, False, self._seed)
        self._seed += 1
        if search.run(self._of.budget.progress(most)):
            self._look(search.candidate().partition)

    def _look(self, partition: Partition) -> None:
        self._looked.add(partition)
        found = timed(self._of, partition, self._name, self._published.order)
        if found is not None and self._of.offer(found) and (self._best is None or found.value < self._best.value):
            self._best = found
