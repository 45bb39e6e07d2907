"""The master problem: a lower bound over all partitions of one placement, and the partitions that reach it.

Logic-based Benders decomposition (Hooker and Ottosson, Mathematical Programming 96, 2003): its cheapest partition is
scheduled, the bound proved so is added as a cut, and the master's bound rises until none is below the best plan.
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
from pipesched.schedule.schedule import Schedule
from solver.backends.cp_sat import solve_model
from solver.planning.budget import Budget
from solver.planning.partitions.critical_path import CriticalPath


@dataclass(frozen=True)
class Cheapest:
    """Result of the master: no partition it allows is below `bound` ticks (None: it allows none), and one near that.

    `complete`: the partition is the cheapest, and the bound its value.
    """

    bound: int | None
    partition: Partition | None
    complete: bool


class Master:
    """The rows for one placement: those that hold for every order, or only those that are added."""

    def __init__(self, plan: PlanProblem, choice: Choice, every_order: bool = True) -> None:
        self.plan, self.choice = plan, choice
        self.model = PartitionModel(plan, choice)
        self.value = self.model.cp.new_int_var(0, choice.pieces * _most_ticks(plan) + self.model.extra.most, "value")
        self._bounds = BoundRows(self.model, choice, self.value)
        if every_order:
            self._bounds.add()
        self.model.cp.minimize(self.value)
        self._bound = mean_load(plan, choice)

    def of_order(self, schedule: Schedule) -> None:
        """Only partitions with which this order fits the memory; its loads are the first cuts."""
        self._bounds.add_of_devices()
        add_memory(self.model, schedule)

    def add_path(self, path: CriticalPath) -> None:
        """No partition is shorter than this path."""
        add_path(self.model, self.value, path.passes, path.lags)

    def at_most(self, ticks: int) -> None:
        """Only partitions whose bound is not above this."""
        self.model.cp.add(self.value <= ticks)

    def exclude(self, partition: Partition, bound: float = inf) -> None:
        """No schedule of this partition is below the bound, in ticks; without one it is no longer looked at."""
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

    def cheapest(self, budget: Budget, most: float, hint: Partition | None = None) -> Cheapest:
        """Solve it, for so many seconds or units; its bound never falls from call to call."""
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


def _most_ticks(plan: PlanProblem) -> int:
    """No bound is above this where micro-batches are whole: all passes in turn, each layer a stage, all recomputed."""
    model, cluster = plan.model, plan.cluster
    farthest = max((cluster.transfer, *(lag for row in cluster.links for lag in row)))
    each = sum(
        (
            layer.forward
            + max(layer.full_backward, layer.backward + (layer.weight or 0))
            + max((way.time for way in layer.recompute), default=0)
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
    return int(plan.microbatches * each * max(cluster.slowness or (Fraction(1),)) / plan.tick)
