"""Best partition for a published order that does not depend on the stage costs, by cuts from critical paths.

The master problem contains every critical path found so far; its cheapest partition is simulated exactly, and the
critical path there is the next cut. There are finitely many paths, so the last partition is proved the best of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formulations.partition.bound_rows import mean_load
from pipesched.errors import Disagreement
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.quantities import Ticks
from pipesched.results.plan import PlanCandidate
from pipesched.results.plan_evidence import OrderPaths
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from solver.parameters import tunable, tuned
from solver.planning.budget import Budget, SecondsOrWork
from solver.planning.joint.search import JointSearch, applies
from solver.planning.partitions.critical_path import critical_path
from solver.planning.partitions.master import Master


@dataclass(frozen=True)
@tunable
class FixedOrderParams:
    """Share of time of one step in the search for the best partition of an order independent of the stage costs."""

    step: float = tuned(0.05, "of its time, for annealing and for one call of the master problem", 0, 1)


_PARAMS = FixedOrderParams()


def provable(plan: PlanProblem, choice: Choice) -> bool:
    """True if the length of a path through stages is a lower bound on the objective.

    Then the best partition is provable. True for the makespan, and for the span where it equals the makespan: backwards
    are not split and there is one path through the stages, so the first device begins first and ends last, except for
    passes for parameters. False with gathers, whose times depend on the memory; with transfers that occupy both
    devices, whose order depends on the times of stages; and with additions such as an encoder, through which paths may
    lead.
    """
    chains, own = choice.on(plan.cluster.devices).chains, plan.model.parameters
    if plan.additions or own.gather is not None or plan.cluster.rendezvous:
        return False
    several = plan.model.splittable or len(chains) > 1 or own.some
    return not plan.objective.by_device or not several


class FixedOrder:
    """Search for the best partition of one order on one placement, where `provable`, by cuts from critical paths.

    The placement is `choice`; `best` is the best plan so far, at first that given. `bound` is a lower bound in ticks on
    every plan with this order; None if no partition fits the memory.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, order: Schedule, best: PlanCandidate | None = None) -> None:
        self.plan, self.choice, self.order, self.best = plan, choice, order, best
        self.master = Master.of_order(plan, choice, order)
        self.bound: Ticks | None = mean_load(self.master.plan, choice)
        self._joint: JointSearch | None = None
        self._tried: list[Partition] = []
        self._unfit: list[Partition] = []
        if best is not None:
            self._cut(best.partition, best.timeline)

    def run(
        self, budget: Budget, most: SecondsOrWork, offer: Callable[[PlanCandidate], bool], first: Partition
    ) -> None:
        """Search until the best partition is proved or `most` seconds or work units are spent; `first` is tried first.

        `best` and `bound` are updated. `offer` is called with each plan found, and returns True if the plan is valid.
        Raises `Disagreement` if the bound is above the value of a plan.
        """
        if first not in self._tried:
            self._try(first, offer)
        until, step = max(0.0, budget.left - most), max(budget.least_step, _PARAMS.step * most)
        self._anneal(budget, step, offer)
        while self.bound is not None and not self.proved and not budget.over() and budget.left > until:
            hint = None if self.best is None else self.best.partition
            found = self.master.cheapest(budget, step, hint)
            self.bound = found.bound
            self._check()
            if found.partition is not None:
                self._try(found.partition, offer)
            if not found.complete and budget.left > until:
                self._anneal(budget, step, offer)
                step *= 2

    def _anneal(self, budget: Budget, most: SecondsOrWork, offer: Callable[[PlanCandidate], bool]) -> None:
        """Search partitions by simulated annealing, which often finds good ones sooner than the master problem.

        It takes at most `most` seconds or work units; `offer` takes a better plan and returns True if it is valid.
        Nothing is done without a first plan, for one that the joint search does not support, or once the order is
        proved.
        """
        if self.best is None or not applies(self.best) or self.proved:
            return
        if self._joint is None or self._joint.value > self.best.value / self.plan.tick:
            self._joint = JointSearch(self.plan, self.choice, self.best, False, budget.limits.seed)
        if self._joint.run(budget.progress(most)):
            found = self._joint.candidate()
            self._cut(found.partition, found.timeline)
            if found.value < self.best.value and offer(found):
                self.best = found

    @property
    def evidence(self) -> OrderPaths:
        """The partitions whose critical paths prove the bound, and those that exceed the memory."""
        return OrderPaths(self.order.name, tuple(self._tried), tuple(self._unfit))

    def _cut(self, partition: Partition, timeline: Timeline) -> None:
        """Add the critical path of a partition's timeline to the master problem as a cut for all partitions."""
        self._tried.append(partition)
        self.master.add_path(critical_path(timeline, self.plan))

    @property
    def proved(self) -> bool:
        """True if it is proved that no partition is better than the best."""
        return self.best is not None and self.bound is not None and self.bound >= self.best.value / self.plan.tick

    def _check(self) -> None:
        """Raise `Disagreement` if the bound is above the value of the best partition known."""
        if self.best is not None and (self.bound is None or self.bound > self.best.value / self.plan.tick):
            raise Disagreement(f"{self.order.name}: a bound of {self.bound} ticks above a plan of {self.best.value}")

    def _try(self, partition: Partition, offer: Callable[[PlanCandidate], bool]) -> None:
        timeline = simulate(self.plan.problem(self.choice, partition), self.order)
        self._cut(partition, timeline)
        found = PlanCandidate(self.choice, partition, timeline, self.order.name)
        if self.best is None or found.value < self.best.value:
            if offer(found):
                self.best = found
            else:
                self._unfit.append(partition)
                self.master.exclude(partition)  # the partition exceeds the memory by less than the master can resolve
