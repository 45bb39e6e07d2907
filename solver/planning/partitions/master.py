"""Benders master problem: a lower bound over all partitions of one placement, and a partition that attains it.

Logic-based Benders decomposition (Hooker and Ottosson, Mathematical Programming 96, 2003): the master's cheapest
partition is scheduled, the bound proved for it is added as a cut, and the master is solved again until its bound
reaches the value of the best plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf

from formulations.partition.bound_rows import BoundRows, mean_load
from formulations.partition.fixed_order import add_memory, add_path
from formulations.partition.partition_model import PartitionModel
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule
from solver.backends.cp_sat import solve_model
from solver.planning.budget import Budget, SecondsOrWork
from solver.planning.partitions.critical_path import CriticalPath


@dataclass(frozen=True)
class Cheapest:
    """Result of one solve of the master problem.

    `bound`: no partition that the master allows has a value below it, in ticks; None if it allows none. `partition`:
    the best found, if any. `complete`: CP-SAT proved that this partition is the cheapest, or that there is none.
    """

    bound: Ticks | None
    partition: Partition | None
    complete: bool


class Master:
    """Master problem of the placement `choice`: a CP-SAT model of its partitions that minimises a lower bound.

    The bound is on their plans; `value` is its variable, in ticks, `model` has the partition's. With `every_order` the
    model has the rows that are valid for every order of passes; else only those added by the methods.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, every_order: bool = True) -> None:
        self.plan, self.choice = plan, choice
        self.model = PartitionModel(plan, choice)
        most = choice.cut.number * _most_ticks(plan) + self.model.extra.most
        self.value = self.model.cp.new_int_var(0, most, "value")
        self._bounds = BoundRows(self.model, choice, self.value)
        if every_order:
            self._bounds.add()
        self.model.cp.minimize(self.value)
        self._bound = mean_load(plan, choice)

    @classmethod
    def of_order(cls, plan: PlanProblem, choice: Choice, schedule: Schedule) -> Master:
        """Return the master of the partitions that fit the memory with the order `schedule`.

        Its bounds are those of load, head and tail; paths are to be added (`add_path`). An order without pairs has no
        blocks, whatever the plan problem allows.
        """
        paired = any(len(slot) == 2 for order in schedule.orders for slot in order)
        found = cls(plan if paired else plan.without_blocks(), choice, every_order=False)
        found._bounds.add_of_devices()
        add_memory(found.model, schedule)
        return found

    def add_path(self, path: CriticalPath) -> None:
        """Add the Benders cut that no value is below the length of `path`."""
        add_path(self.model, self.value, path.passes, path.lags, path.blocks)

    def at_most(self, ticks: Ticks) -> None:
        """Restrict the master to partitions whose bound is at most `ticks`."""
        self.model.cp.add(self.value <= ticks)

    def exclude(self, partition: Partition, bound: float = inf) -> None:
        """Add the cut that no schedule of `partition` is below `bound` ticks, rounded up.

        With an infinite bound, forbid the partition.
        """
        cp, equal = self.model.cp, []
        for number, (variable, value) in enumerate(self.model.values_of(partition)):
            literal = cp.new_bool_var(f"same{number}")
            cp.add(variable != value).only_enforce_if(~literal)
            cp.add(variable == value).only_enforce_if(literal)
            equal.append(literal)
        if bound == inf:
            cp.add_bool_or([~literal for literal in equal])
        else:
            cp.add(self.value >= ceil(bound)).only_enforce_if(*equal)

    def cheapest(self, budget: Budget, most: SecondsOrWork, hint: Partition | None = None) -> Cheapest:
        """Solve the master for at most `most` seconds or work units of `budget`.

        The bound returned never decreases from call to call. `hint` is a partition that the search may begin with.
        """
        if hint is not None:
            self.model.hint(hint)
        parameters = budget.parameters(most)
        answer = solve_model(self.model.cp, parameters, budget.stop)
        budget.give_back(parameters, answer.work)
        if answer.infeasible:
            return Cheapest(None, None, True)
        self._bound = max(self._bound, answer.bound)
        partition = self.model.partition(answer.value_of) if answer.has_solution else None
        return Cheapest(self._bound, partition, answer.complete)


def _most_ticks(plan: PlanProblem) -> Ticks:
    """Return an upper bound in ticks on every value: all passes in sequence, each layer a stage, all recomputed."""
    model, cluster = plan.model, plan.cluster
    farthest = max((cluster.transfer, *(lag for row in cluster.links for lag in row)))
    each = sum(
        (
            layer.forward
            + max(layer.full_backward, layer.backward + (layer.weight or 0))
            + max((mode.time for mode in layer.recompute), default=0)
            + model.forward_overhead
            + model.backward_overhead
            + model.parameters.added
            + layer.gather
            + layer.reduce
            + layer.step
            + 2 * farthest
            for layer in model.sequence
        ),
        Fraction(0),
    )
    # Stages beyond one a layer, which are empty, add their overheads and transfers.
    more = max(choice.on(cluster.devices).stages for choice in plan.choices) if model.empty_stages else 0
    added = model.forward_overhead + model.backward_overhead + model.parameters.added + 2 * farthest
    each += more * added
    return int(plan.microbatches * each * max(cluster.slowness or (Fraction(1),)) / plan.tick)
