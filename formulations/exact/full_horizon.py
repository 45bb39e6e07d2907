"""The exact model over the full horizon, with a known schedule as a complete hint."""

from __future__ import annotations

from math import ceil

from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.variables.model_variables import MOST_LITERALS
from formulations.variables.operations import Operation
from pipesched.problem.attainable_spans import Value
from pipesched.problem.passes import BW, B, W
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline


class FullHorizon(ExactModel):
    """The model of a problem, to be improved below a known timeline and not below a proved bound (ticks).

    The timeline may be in finer ticks than the problem.
    """

    def __init__(
        self,
        problem: Problem,
        incumbent: Timeline,
        value: Value,
        lower_bound: Value,
        most_literals: int = MOST_LITERALS,
    ) -> None:
        super().__init__(problem, ceil(value), lower_bound, most_literals)
        self._hint(incumbent, ceil(value))

    def _hint(self, incumbent: Timeline, value: int) -> None:
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
            if self.idle:
                for x in device.operations:
                    before = [y for y in device.operations if starts[y] < starts[x]]
                    model.cp.add_hint(self.idle[x], starts[x] - sum(model.shortest[y] for y in before))
        for (forward, backward), block in model.together.items():
            model.cp.add_hint(block, starts[forward] == starts[backward])
        if model.scale == 1:
            model.cp.add_hint(self.objective, value)

    def _starts(self, incumbent: Timeline) -> dict[Operation, int]:
        """The incumbent's starts in steps; a fused backward's weight operation starts where it ends."""
        starts: dict[Operation, int] = {}
        # Times rounded down to whole ticks keep every rule.
        parts = int(self.problem.tick / incumbent.problem.tick)
        for p in incumbent.schedule.passes():
            role = B if p.kind is BW else p.kind
            starts[Operation(role, p.stage, p.microbatch)] = incumbent.start(p) // parts * self.model.scale
            weight = Operation(W, p.stage, p.microbatch)
            if p.kind is BW and weight in self.model.start:
                starts[weight] = incumbent.end(p) // parts * self.model.scale
        return starts
