"""Search over all partitions of one placement: bounds, cheapest partitions, and orders for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from time import monotonic

from formulations.partition.bound_rows import mean_load
from heuristics.building.patience import patience
from heuristics.catalogue import schedule_named
from pipesched.errors import BadInput, Disagreement, DoesNotApply, is_defect
from pipesched.layers.even import even_counts
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.recompute_rule import why_not_expressible
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.plan import ChoiceResult, PlanCandidate
from pipesched.results.plan_evidence import (
    AllOrders,
    AllPartitions,
    MeanLoad,
    OrderPaths,
    PlanEvidence,
    TooManyStages,
)
from pipesched.results.solution import Solution, Status
from pipesched.schedule.schedule import Schedule
from pipesched.validation.validator import validate
from solver.construction.timing import best_times
from solver.cyclic.solve_period import solve_period
from solver.engine.long_run import search_long_run
from solver.planning.budget import Budget, SecondsOrWork
from solver.planning.partitions.balance import balanced, balanced_loads
from solver.planning.partitions.by_device import bound_by_device
from solver.planning.partitions.master import Master
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.solved_partitions import SolvedPartitions
from solver.planning.search.fixed_order import FixedOrder, provable
from solver.solve import solve

Offer = Callable[[PlanCandidate], None]

_ARGUMENT = "load, head and tail, and the pipeline's latency under the memory of every partition"
_OF_PERIODS = "load, and round trips under the memory of every partition"


class ChoiceSearch:
    """Search state of the placement `choice`: the bound on its plans, its best plan, and the partitions tried.

    `bound` is a lower bound in ticks on every plan of the placement, proved by `argument` (text); None if it has no
    plan, for the stated `reason`. `bound_is_final` is True once the master problem was solved to its end. `settled` is
    True if the placement is searched no further: it has no plan, none of its remaining partitions can beat the best
    plan of all placements, or the bound was wrong. `next` is the partition to schedule next (None: none yet), `visits`
    the number of searches of each partition so far, `failures` the number of steps that ended by an error, `stages` the
    number of stages of a chain, `notes` those on defects of its solves. `offer` gets every better plan of it, for the
    search of all placements.

    The attribute `best` is the best plan of this placement; a parameter `best` of a method is the value of the best
    plan of all placements, in the file's unit, or None. The parameter `most` limits the seconds that a method takes, or
    its units of counted work.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, budget: Budget, offer: Offer) -> None:
        self.plan, self.choice, self.budget, self._offer_to_all = plan, choice, budget, offer
        self.stages = len(choice.on(plan.cluster.devices).chains[0])
        self.best: PlanCandidate | None = None
        self.bound: Fraction | None = Fraction(mean_load(plan, choice))
        self.reason = ""
        self.argument = "the mean load of the devices"
        self.settled = False
        self.next: Partition | None = None
        self._start: Partition | None = None
        self._solved = SolvedPartitions(plan)
        self._orders: list[OrderPaths] = []  # what proves the bound, where only these are allowed
        self._relaxed = self._distrusted = False
        self.bound_is_final = False  # until a partition is excluded
        self.visits: dict[Partition, int] = {}
        self.failures = 0  # steps of the search that an error ended
        self.notes: list[str] = []  # on defects that solves of its partitions met
        self._master: Master | None = None
        self._by_device, self._least = False, Fraction(0)
        if self.stages > plan.model.most_stages:
            self.no_plan(f"{self.stages} stages; the model can be cut into {plan.model.most_stages} at most")
        elif plan.counts is not None and len(plan.counts) != self.stages:
            self.no_plan(f"{self.stages} stages; the partition given has {len(plan.counts)}")
        elif plan.even:
            counts = even_counts(plan.model, self.stages)
            self.plan = replace(plan, counts=counts, even=False)
            if counts is None:
                self.no_plan(f"its layers cannot be spread evenly over {self.stages} stages")
        self._without_partition = self.bound is None

    def result(self) -> ChoiceResult:
        """Return the search's state as the placement's result: bound in the file's time unit, best plan, evidence."""
        bound = None if self.bound is None else self.bound * self.plan.tick
        return ChoiceResult(self.choice, bound, self.best, self.reason, self._evidence())

    def _evidence(self) -> PlanEvidence | None:
        """Return the evidence of the bound for its check; None where the bound turned out to be wrong."""
        if self._orders:
            return AllOrders(tuple(self._orders))
        if self._relaxed:
            return AllPartitions(self._solved.known)
        if self.bound is None:
            return TooManyStages() if self._without_partition else AllOrders(())  # of the orders allowed none applies
        return None if self._distrusted else MeanLoad()

    def why_not(self, name: str) -> str | None:
        """Return the reason why a published schedule does not apply to this placement; None if it applies.

        Raises `BadInput` for an unknown name.
        """
        try:
            self.order_of(name)
        except DoesNotApply as reason:
            return str(reason)
        return None

    def order_of(self, name: str) -> Schedule:
        """Return the order of a published schedule on the balanced partition without a memory limit.

        Raises `DoesNotApply` if the schedule is not defined for this placement, `BadInput` if its name is unknown.
        """
        with patience():
            return schedule_named(name).order(self.roomy_problem(self.balanced))

    def roomy_problem(self, partition: Partition) -> Problem:
        """Return the scheduling problem of a partition without a memory limit, to test if an order applies at all."""
        roomy = replace(self.plan, cluster=replace(self.plan.cluster, capacity=None))
        return roomy.problem(self.choice, partition)

    @property
    def first(self) -> Partition:
        """The partition to schedule first: `balanced`, until the best partition for a published order is searched.

        Where memory is limited, it is from then on one that is balanced together with the recomputation chosen for that
        order to fit the memory. Neither is sure to fit.
        """
        return self.balanced if self._start is None else self._start

    @cached_property
    def balanced(self) -> Partition:
        """The balanced partition at which the search begins; it may not fit the memory.

        The path to a device and back does not count in a period.
        """
        return balanced_loads(self.plan, self.choice, not self.plan.objective.repeats)

    def best_of_order(self, order: Schedule, most: SecondsOrWork) -> FixedOrder:
        """Search the best partition for `order` within `most`, and return the search; plans found are offered.

        Nothing is searched where the best partition is not `provable`. Raises `Disagreement` if a bound is above the
        value of a plan.
        """
        known = self.best if self.best is not None and self.best.timeline.schedule is order else None
        search = FixedOrder(self.plan, self.choice, order, known)
        if provable(self.plan, self.choice):
            self.go_on(search, most)
        return search

    def go_on(self, search: FixedOrder, most: SecondsOrWork) -> None:
        """Continue a search for the best partition of an order within `most`; plans found are offered.

        Raises `Disagreement` if a bound is above the value of a plan.
        """
        if self.plan.cluster.capacity is not None:
            self._start = balanced(self.plan, self.choice, MemoryFit(self.plan, self.choice, search.order))
        search.run(self.budget, most, self.offer, self.first)

    def relax(self, most: SecondsOrWork, best: Fraction | None) -> None:
        """Solve the master problem for partitions whose bound is at most `best`, in the file's unit (None: any).

        Improves `bound` and sets `next` to the partition to schedule next (None: none found), within `most` seconds or
        work units; `settled` is set where no partition can be better than `best`. Raises `Disagreement` if the bound is
        above the value of a known plan, or no partition is found although one is known.
        """
        self.bound_by_devices(most, best)
        if best is not None and self._least >= best / self.plan.tick:
            self.settled = True
            return
        if self._master is None:
            self._master = Master(self.plan, self.choice)
        if best is not None:
            whole = floor if self.plan.objective.repeats else ceil
            self._master.at_most(whole(best / self.plan.tick))
        hint = self.first if self.best is None else self.best.partition
        found = self._master.cheapest(self.budget, most, hint)
        self.next, self._relaxed, self.bound_is_final = found.partition, True, found.complete
        self.argument = _OF_PERIODS if self.plan.objective.repeats else _ARGUMENT
        if found.bound is not None:
            known = self.best is not None and self.best.partition not in self._solved.left_out
            if known and self.best is not None and found.bound > ceil(self.best.value / self.plan.tick):
                raise Disagreement(f"{self.choice}: a bound of {found.bound} ticks above a plan of {self.best.value}")
            bound = max(self._least, min([Fraction(found.bound), *self._solved.values]))
            if not self._orders or self.bound is None or bound > self.bound:
                self.bound, self._orders = bound, []
            self.settled = best is not None and found.bound >= best / self.plan.tick
        elif best is not None:
            if self.best is not None and self.best.value == best and self.best.partition not in self._solved.left_out:
                raise Disagreement("the search over partitions lost one that is known")
            self.bound, self.settled, self._orders = min([best / self.plan.tick, *self._solved.values]), True, []
        elif self._solved.values:
            self.bound, self.settled = min(self._solved.values), True
        else:
            self.no_plan("no partition fits the memory")

    def bound_by_devices(self, most: SecondsOrWork, best: Fraction | None) -> None:
        """Raise `bound` by the lower bound from dynamic programming over devices, once, within `most` seconds.

        `best` is the value of the best plan of all placements in the file's unit, if any.
        """
        if self._by_device or most <= 0:
            return
        self._by_device, value = True, None if best is None else ceil(best / self.plan.tick)
        self._least = Fraction(bound_by_device(self.plan, self.choice, value, self.budget.late(most)))
        if self.bound is not None and self._least > self.bound:
            self.bound, self._relaxed, self._orders, self.argument = self._least, True, [], _ARGUMENT

    def visit(self, most: SecondsOrWork) -> None:
        """Search an order for the partition `next`, and add what is proved of that partition to the master problem.

        `next`, set by `relax`, must not be None, and becomes None. The partition is excluded there if its best schedule
        is known, if it has none, or for a period; else only values of it below its proved bound are. The search takes
        at most `most` seconds or work units, twice as many at each further visit of the same partition. The very first
        visit is of the partition `first` if that fits the memory.
        """
        assert self.next is not None and self._master is not None
        partition, self.next = self.next, None
        if not self.visits and why_infeasible(self.plan.problem(self.choice, self.first)) is None:
            partition = self.first
        visits = self.visits[partition] = self.visits.get(partition, 0) + 1
        solution = self.solve(partition, most * 2 ** (visits - 1))
        self.offer_solved(partition, solution)
        lower = self._solved.add(partition, solution)
        if self.plan.objective.repeats:
            # A search for patterns ends of itself, and would find no more the next time.
            self._solved.leave_out(partition, lower)
        if partition in self._solved.left_out:
            self._master.exclude(partition)
        else:
            self._master.exclude(partition, int(lower))

    def left_open(self) -> list[tuple[Partition, Fraction]]:
        """Return (partition, bound in ticks) for each partition left out although its best schedule is not known."""
        return [*self._solved.open.items()]

    def solve(self, partition: Partition, most: SecondsOrWork) -> Solution:
        """Search any order for `partition` within `most`; return the result.

        It starts from the order of the best plan where that fits the memory; for a period a pattern is searched. The
        result is not offered.
        """
        problem = self.plan.problem(self.choice, partition)
        limits = self.budget.of_solve(most)
        found = None
        if problem.objective.repeats:
            stop = self.budget.stop
            found = solve_period(problem, limits, stop=stop, published=False, search_long_run=search_long_run)
        elif self.best is not None:
            # Its order may not fit the memory that these stages leave.
            with suppress(BadInput):
                found = solve(problem, limits, stop=self.budget.stop, start=self.best.timeline.schedule)
        found = found or solve(problem, limits, stop=self.budget.stop)
        self.notes += filter(is_defect, found.notes)
        self.budget.solved(limits, found.status is Status.OPTIMAL)
        return found

    def visit_published(self, names: Sequence[str]) -> None:
        """Evaluate the published schedules `names` on the partition `next` and offer the plans.

        The partition is then excluded from the master problem. `next`, set by `relax`, must not be None, and becomes
        None.
        """
        assert self.next is not None and self._master is not None
        partition, self.next = self.next, None
        problem, values = self.plan.problem(self.choice, partition), list[Fraction]()
        for name in names:
            try:
                timeline = best_times(problem, schedule_named(name).order(problem))
            except DoesNotApply:
                continue
            candidate = PlanCandidate(self.choice, partition, timeline, name)
            if self.offer(candidate):
                values.append(candidate.value)
        self._solved.add_published(partition, values)
        self._master.exclude(partition)

    def proved(self, bounds: Sequence[Ticks], evidence: Sequence[OrderPaths]) -> None:
        """Record lower bounds (ticks) over all partitions: one for each allowed order that fits some partition.

        `evidence` has, for each allowed order, the paths that prove its bound. The least of them becomes the bound of
        the placement, or the value of its best plan if that is less; a bound for any order that is higher stays.
        `bounds` is empty where no partition fits: then, without a plan, the placement is recorded as having none.
        """
        own = [] if self.best is None else [self.best.value / self.plan.tick]
        if not bounds and not own:
            self._orders = list(evidence)
            self.no_plan("no partition fits the memory with the order of these schedules")
            return
        bound = min([*map(Fraction, bounds), *own])
        if self._relaxed and not self._orders and self.bound is not None and self.bound > bound:
            return
        self.bound, self._orders = bound, list(evidence)
        self.argument = "longest paths of the orders allowed, for every partition"
        self.settled = bool(own) and self.bound == own[0]

    def distrust(self) -> None:
        """Replace the bound by 0 and discard its evidence, after a plan was found below the bound.

        The placement is searched no further.
        """
        self.bound, self.settled, self._distrusted = Fraction(0), True, True
        self._orders, self._relaxed = [], False

    def offer(self, candidate: PlanCandidate) -> bool:
        """Keep the candidate if it is valid and better than the best plan of this placement, and pass it on.

        The search of all placements then gets it. True if it is valid and its recomputation is allowed, better or not.
        """
        if why_not_expressible(self.plan.model, candidate.partition, self.plan.recompute_rule):
            return False
        began = monotonic()
        violations = validate(candidate.timeline)
        self.budget.took(monotonic() - began)
        if violations:
            return False
        if self.best is None or candidate.value < self.best.value:
            self.best = candidate
            self._offer_to_all(candidate)
        return True

    def offer_solved(self, partition: Partition, solution: Solution) -> None:
        """Offer the schedule of a solution, if it has one."""
        if solution.timeline is not None:
            name = solution.timeline.schedule.name
            metrics, tick = solution.metrics, solution.problem.tick
            period = None if metrics is None or metrics.period_ticks is None else metrics.period_ticks * tick
            self.offer(PlanCandidate(self.choice, partition, solution.timeline, name or "pipesched", period))

    def no_plan(self, reason: str) -> None:
        """Record that this placement has no plan, for this reason."""
        self.bound, self.settled, self.reason = None, True, reason
