"""Decision variables of the exact model: starts of operations, fused or split backwards, the order on every device."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from ortools.sat.python import cp_model

from formulations.variables.operations import Operation, StaticOrder
from formulations.variables.order_literals import DeviceOrder, Truth, literal_count
from formulations.variables.overlap_literals import Pair, overlap_literals
from pipesched.errors import PipeschedError
from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.mode_gains import fused_is_dominated
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem

Linear = cp_model.LinearExpr | cp_model.IntVar | int

# CP-SAT sums 64-bit integers; beyond this horizon a sum of many terms may overflow.
_LONGEST = 2**50

# Beyond this many, order literals cost more than they help; the model then rests on intervals alone.
MOST_LITERALS = 60_000

# Beyond this many overlapped blocks to choose from, a model that rests on intervals leaves them out.
MOST_BLOCKS = 40_000


class TooLong(PipeschedError):
    """A problem whose times CP-SAT's integers cannot hold; the text says so in one sentence."""


def refuse_too_long(horizon: int) -> None:
    """Raises `TooLong` for a horizon, in steps, that CP-SAT cannot take."""
    if horizon > _LONGEST:
        raise TooLong(
            f"the times need {horizon:.1e} whole steps and CP-SAT takes up to {_LONGEST:.1e}: give them with fewer "
            "decimals"
        )


class Model:
    """A CP-SAT model under construction, with the variables that constraints speak of.

    Times are in steps, `scale` of them to a tick. Where passes of no duration exist, each of the `zeros` of them takes
    one step: every pass then has its own place in the order. All these steps together are less than the least part of
    a tick by which values of orders differ (`attainable_spans`), so a value in steps tells that of the order.
    """

    def __init__(
        self, problem: Problem, most_literals: int = MOST_LITERALS, devices: Collection[int] | None = None
    ) -> None:
        """Order literals on these devices, if there are not too many; on all devices unless said. Raises `TooLong`."""
        self.problem = problem
        self.cp = cp_model.CpModel()
        self.static = StaticOrder(problem)
        self.operations = [self.static.operations(device) for device in range(problem.devices)]
        self.parts, self.zeros = largest_denominator(problem), self._passes_of_no_length()
        self.scale = self.parts * self.zeros + 1
        self.horizon = self._horizon()
        refuse_too_long(self.horizon)
        self.start = {x: self.cp.new_int_var(0, self.horizon, f"S{x}") for held in self.operations for x in held}
        self.fused: dict[tuple[int, int], Truth] = {
            (x.stage, x.microbatch): self._fused(x.stage, x.microbatch) for x in self.start if x.role is B
        }
        self.order: dict[int, DeviceOrder] | None = None
        devices = range(problem.devices) if devices is None else devices
        if literal_count(problem, devices) <= most_literals:
            self.order = {device: DeviceOrder(self.cp, self.static, device) for device in devices}
        self.together, self.has_all_blocks = self._overlaps()
        self._partners: dict[Operation, list[tuple[Operation, cp_model.IntVar]]] = {}
        for pair, literal in self.together.items():
            for x in pair:
                self._partners.setdefault(x, []).append((pair[0], literal))

    @property
    def devices_in_order(self) -> Collection[DeviceOrder]:
        """The orders of the devices that have order literals."""
        return self.order.values() if self.order is not None else ()

    def _overlaps(self) -> tuple[dict[Pair, cp_model.IntVar], bool]:
        """The literals of overlapped blocks, and whether there is one for every block that can gain.

        A device that is relaxed to delays needs none: its passes last as long as their shortest way to run there.
        """
        if self.order is not None:
            return {pair: block for device in self.order.values() for pair, block in device.together.items()}, True
        together = overlap_literals(self.cp, self.static, range(self.problem.devices), MOST_BLOCKS)
        return together or {}, together is not None

    def _fused(self, stage: int, j: int) -> Truth:
        """Whether the backward runs in one go: known, or for CP-SAT to decide."""
        if not self.problem.splittable:
            return True
        if fused_is_dominated(self.problem, stage):
            return False
        return self.cp.new_bool_var(f"fused{stage}.{j}")

    def _passes_of_no_length(self) -> int:
        passes = [p for held in self.operations for x in held for p in self._passes(x)]
        zeros = sum(self.problem.duration(p) == 0 for p in passes)
        if self.problem.overlaps:
            zeros += sum(p.kind is F and self.problem.stages[p.stage].overlapped == 0 for p in passes)
        return zeros

    def _passes(self, x: Operation) -> list[Pass]:
        """The passes that may stand for an operation."""
        kinds: tuple[PassKind, ...] = (x.role,)
        if x.role is B:
            kinds = (B, BW) if self.problem.splittable else (BW,)
        return [Pass(kind, x.stage, x.microbatch) for kind in kinds]

    def _horizon(self) -> int:
        """No start need be later than all passes and transfers one after another."""
        problem = self.problem
        passes = sum(max(self.steps(p) for p in self._passes(x)) for held in self.operations for x in held)
        lags = (need.lag for needs in problem.network.needs.values() for need in needs)
        transfers = problem.microbatches * sum(lags)
        return passes + transfers * self.scale

    def steps(self, p: Pass) -> int:
        """A pass's duration in steps."""
        return max(1, self.problem.duration(p) * self.scale)

    @cached_property
    def shortest(self) -> dict[Operation, int]:
        """The least an operation adds to the work before those behind it, in steps.

        A block of two is shorter than one after the other; the forward bears the difference.
        """
        shortest = {x: min(self.steps(p) for p in self._passes(x)) for x in self.start}
        for (stage, j), fused in self.fused.items():
            weight = Operation(W, stage, j)
            if weight in shortest and fused is not False:
                shortest[weight] = 0
        for forward, backward in self.together:
            block, full = self.block(forward), self.steps(Pass(BW, backward.stage, backward.microbatch))
            shortest[backward] = min(shortest[backward], block)
            shortest[forward] = min(shortest[forward], max(0, block - full))
        return shortest

    def block(self, forward: Operation) -> int:
        """The steps of an overlapped block with this forward."""
        ticks = self.problem.stages[forward.stage].overlapped
        assert ticks is not None
        return max(1, ticks * self.scale)

    def duration(self, x: Operation) -> Linear:
        """How long an operation takes, in steps: a number, or what follows from fused and block literals.

        A block's two operations both last as long as the block. In one, the backward is fused.
        """
        alone, partners = self.alone(x), self._partners.get(x)
        if not partners:
            return alone
        base = self.steps(Pass(F if x.role is F else BW, x.stage, x.microbatch))
        return alone + sum((self.block(forward) - base) * literal for forward, literal in partners)

    def alone(self, x: Operation) -> Linear:
        """How long an operation takes that is in no block, in steps."""
        fused = self.fused[x.stage, x.microbatch]
        if x.role is F:
            return self._least_in_block(x, self.steps(Pass(F, x.stage, x.microbatch)))
        if x.role is W:
            weight = self.steps(Pass(W, x.stage, x.microbatch))
            return weight * (1 - fused) if not isinstance(fused, bool) else weight
        whole = self._least_in_block(x, self.steps(Pass(BW, x.stage, x.microbatch)))
        if fused is True:
            return whole
        split = self.steps(Pass(B, x.stage, x.microbatch))
        return split if fused is False else split + (whole - split) * fused

    def _least_in_block(self, x: Operation, alone: int) -> int:
        """On a device that is relaxed to delays: alone, or in the shortest block that it may be in."""
        device = self.problem.placement.stage_device[x.stage]
        if self.order is None or device in self.order or not self.problem.overlaps:
            return alone
        mates = [x.stage] if x.role is F else self.problem.placement.stages_of[device]
        return min(alone, *(self.block(Operation(F, mate, x.microbatch)) for mate in mates))

    def end(self, x: Operation) -> Linear:
        return self.start[x] + self.duration(x)

    def last(self, stage: int, j: int) -> Operation:
        """The operation that ends a micro-batch's work on a stage."""
        return Operation(W if self.problem.splittable else B, stage, j)
