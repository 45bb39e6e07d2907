"""The exact model: all rules and what follows from them, on some devices or all; and schedules out of its solutions."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS
from formulations.model import MOST_LITERALS, Model
from formulations.objectives import post_objective
from formulations.operations import Operation
from formulations.order import Literal
from formulations.redundant import post_redundant
from pipesched.errors import PipeschedError
from pipesched.passes import BW, B, Pass, W
from pipesched.problem import Problem
from pipesched.schedule import Schedule, Slot

# CP-SAT sums 64-bit integers; beyond this horizon a sum of many terms may overflow.
_LONGEST = 2**50


class TooLong(PipeschedError):
    """A problem whose times CP-SAT's integers cannot hold; the text says so in one sentence."""


class ExactModel:
    """Schedules of a value between two, in ticks.

    Devices that are left out of `devices` are mere delays: they run passes of one kind and stage in turn and any others
    at once, and memory is no matter there. If then no schedule is as good, none of the problem is either. Leave none
    out where a block can be shorter than its passes: delays know no blocks.
    """

    def __init__(
        self,
        problem: Problem,
        at_most: int,
        at_least: int,
        most_literals: int = MOST_LITERALS,
        devices: Collection[int] | None = None,
    ) -> None:
        self.problem = problem
        self.model = Model(problem, most_literals, devices)
        if self.model.horizon > _LONGEST:
            raise TooLong(
                f"the times need {self.model.horizon:.1e} whole steps and CP-SAT takes up to {_LONGEST:.1e}: give them "
                "with fewer decimals"
            )
        for constraint in CONSTRAINTS:
            constraint.post(self.model)
        self.idle = post_redundant(self.model)
        self.objective = post_objective(self.model, at_most, at_least, self.idle)

    @property
    def cp(self) -> cp_model.CpModel:
        return self.model.cp

    @property
    def bounds_everything(self) -> bool:
        """Whether a bound of this model holds for every schedule: it does unless it leaves out overlapped blocks."""
        problem = self.problem
        if self.model.order is not None or problem.costs.overlapped is None:
            return True
        alone = min(problem.costs.forward) + min(problem.costs.fused)
        return min(problem.costs.overlapped) >= max(alone, max(problem.costs.forward) + max(problem.costs.fused))

    def ticks(self, steps: float) -> int:
        """An objective value in steps, or a lower bound on one, in ticks."""
        return round(steps) // self.model.scale

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
