"""The exact model: all constraints and valid inequalities, on some or all devices, and decoding of its solutions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction

from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS
from formulations.exact.objectives import post_objective
from formulations.exact.valid_inequalities import post_origin, post_redundant
from formulations.exact.work_by_mode import post_work
from formulations.variables.model_variables import MOST_LITERALS, Model
from formulations.variables.operations import Operation
from formulations.variables.order_literals import Literal
from pipesched.problem.attainable_spans import Value, least_above
from pipesched.problem.passes import BW, B, Pass, Slot, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


class ExactModel:
    """Schedules in whole ticks of a value between two, in ticks.

    An order whose least span is a fraction of a tick has the next integer here.
    Devices not in `devices` are relaxed to delays: there passes of one kind and stage run one at a time and any others
    at once, without memory limits, each as long as alone or in its shortest block. If no such schedule is as good, none
    of the problem is either.
    """

    def __init__(
        self,
        problem: Problem,
        at_most: int,
        at_least: Value,
        most_literals: int = MOST_LITERALS,
        devices: Collection[int] | None = None,
    ) -> None:
        self.problem = problem
        self.model = Model(problem, most_literals, devices)
        for constraint in CONSTRAINTS:
            constraint.post(self.model)
        post_origin(self.model)
        self.idle = post_redundant(self.model)
        work = post_work(self.model)
        self.objective = post_objective(self.model, at_most, at_least, self.idle, work)

    @property
    def cp(self) -> cp_model.CpModel:
        return self.model.cp

    @property
    def bounds_everything(self) -> bool:
        """Whether a bound of this model holds for every schedule: not where overlapped blocks had to be left out."""
        return self.model.has_all_blocks

    def most(self, steps: float) -> Fraction:
        """The most that the value in ticks can be of an order that takes so many steps."""
        return Fraction(round(steps), self.model.scale)

    def bound(self, steps: float) -> Value:
        """The least value in ticks of an order that takes no fewer steps, given in whole ticks or not.

        One that takes no time less than n ticks in whole ones may take less than n, but more than n - 1.
        """
        model = self.model
        return least_above(Fraction(round(steps) - 1 - model.zeros, model.scale), model.parts)

    def decode(self, value_of: Callable[[Literal], int]) -> Schedule:
        """The order of a solution. Operations that start together form a block."""
        orders: list[tuple[Slot, ...]] = []
        for operations in self.model.operations:
            at: dict[int, list[Pass]] = {}
            for x in operations:
                p = self._pass(x, value_of)
                if p is not None:
                    at.setdefault(value_of(self.model.start[x]), []).append(p)
            orders.append(tuple(_slot(at[start]) for start in sorted(at)))
        return Schedule(tuple(orders), "pipesched")

    def _pass(self, x: Operation, value_of: Callable[[Literal], int]) -> Pass | None:
        fused = self.model.fused[x.stage, x.microbatch]
        if not isinstance(fused, bool):
            fused = bool(value_of(fused))
        if fused and x.role is W:
            return None
        return Pass(BW if fused and x.role is B else x.role, x.stage, x.microbatch)


def _slot(passes: list[Pass]) -> Slot:
    """One pass, or a block with its forward first."""
    if len(passes) == 1:
        return (passes[0],)
    forward, backward = sorted(passes, key=lambda p: p.kind is BW)
    return forward, backward
