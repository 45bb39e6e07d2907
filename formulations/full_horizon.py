"""The exact model over the full horizon: every pass of every micro-batch, with a complete hint, and decoded again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
from pipesched.timeline import Timeline

# CP-SAT sums 64-bit integers; beyond this horizon a sum of many terms may overflow.
_LONGEST = 2**50


class TooLong(PipeschedError):
    """A problem whose times CP-SAT's integers cannot hold; the text says so in one sentence."""


class FullHorizon:
    """The model of a problem, to be improved below a known timeline and not below a proved bound (ticks)."""

    def __init__(
        self, problem: Problem, incumbent: Timeline, value: int, lower_bound: int, most_literals: int = MOST_LITERALS
    ) -> None:
        self.problem = problem
        self.model = Model(problem, most_literals)
        if self.model.horizon > _LONGEST:
            raise TooLong(
                f"the times need {self.model.horizon:.1e} whole steps and CP-SAT takes up to {_LONGEST:.1e}: give them "
                "with fewer decimals"
            )
        for constraint in CONSTRAINTS:
            constraint.post(self.model)
        idle = post_redundant(self.model)
        self.objective = post_objective(self.model, value, lower_bound, idle)
        self._hint(incumbent, value, idle)

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

    def _hint(self, incumbent: Timeline, value: int, idle: Mapping[Operation, cp_model.IntVar]) -> None:
        """Every variable's value in the incumbent, if the incumbent runs each line in order; CP-SAT checks the rest."""
        starts = self._starts(incumbent)
        model = self.model
        if any(starts[before] > starts[x] for x in starts for before in model.static.just_before(x)):
            return
        for x, start in starts.items():
            model.cp.add_hint(model.start[x], start)
        for (stage, j), fused in model.fused.items():
            if not isinstance(fused, bool):
                model.cp.add_hint(fused, incumbent.schedule.is_fused(stage, j))
        for device in model.devices_in_order:
            for x, y, ahead in device.undecided():
                if isinstance(ahead, cp_model.IntVar):
                    model.cp.add_hint(ahead, (starts[x], x.role is W) < (starts[y], y.role is W))
            for (forward, backward), block in device.together.items():
                model.cp.add_hint(block, starts[forward] == starts[backward])
            if idle:
                for x in device.operations:
                    before = [y for y in device.operations if starts[y] < starts[x]]
                    model.cp.add_hint(idle[x], starts[x] - sum(model.shortest[y] for y in before))
        if model.scale == 1:
            model.cp.add_hint(self.objective, value)

    def _starts(self, incumbent: Timeline) -> dict[Operation, int]:
        """The incumbent's starts in steps; a fused backward's weight operation starts where it ends."""
        starts: dict[Operation, int] = {}
        for p in incumbent.schedule.passes():
            role = B if p.kind is BW else p.kind
            starts[Operation(role, p.stage, p.microbatch)] = incumbent.start(p) * self.model.scale
            weight = Operation(W, p.stage, p.microbatch)
            if p.kind is BW and weight in self.model.start:
                starts[weight] = incumbent.end(p) * self.model.scale
        return starts


def _slot(passes: list[Pass]) -> Slot:
    """One pass, or a block with its forward first."""
    if len(passes) == 1:
        return (passes[0],)
    forward, backward = sorted(passes, key=lambda p: p.kind is BW)
    return forward, backward
