"""Valid inequalities where modes are open: idle time and work before certain passes of a device, by chosen modes.

The inequalities of idle time in `valid_inequalities.py` count each pass with the least time that it may add. A W whose
backward may be full counts 0 there, and a forward that may be in a block only what the block takes more than its full
backward. Here each pass counts with the time that it takes in its chosen mode. For the first and for the last pass of
each kind but W on each stage, its start is the idle time before it plus the work before it. A block counts as its
forward, with the least that a block with this forward takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ortools.sat.python import cp_model

from formulations.jobs.quantities import TimeSteps
from formulations.variables.literals import Linear, Truth, negation
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from formulations.variables.resource_order import ResourceOrder
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, F, PassKind, W


class DeviceWork(NamedTuple):
    """The least work of a device in its chosen modes (`total`), and variables of its idle time before some passes.

    Both in steps. `idle` has, in no order that counts, those of the first and the last pass of each kind but W on each
    stage.
    """

    total: Linear
    idle: list[cp_model.IntVar]


def post_work(model: Model) -> dict[Resource, DeviceWork]:
    """Post the inequalities on each resource with open modes, and return its least work and idle times, in steps.

    The least work in the chosen modes is an expression, idle times are variables. Modes are open if some backward may
    be full or split, or some passes may run as a block. A resource has an entry only if in addition it has order
    literals, and none of its passes is optional but a W, which a full backward includes.
    """
    found = {}
    for where, order in (model.order or {}).items():
        fused = [model.fused[x.stage, x.microbatch] for x in order.operations if x.role is B]
        is_open = order.together or any(not isinstance(one, bool) for one in fused)
        if is_open and all(map(model.operations.always, order.operations)):
            found[where] = _Modes(model, order).post()
    return found


class _Modes:
    """The passes of one device (`device` has their order literals) with their modes.

    `alone` has, for each pass but W, a literal that is true if it is in no block; True if it can be in none.
    """

    def __init__(self, model: Model, device: ResourceOrder) -> None:
        self.model, self.device = model, device
        self.alone = self._alone()

    def _alone(self) -> dict[Operation, Truth]:
        """Create the literals of passes but W that are in no block, and post that as many forwards as backwards are.

        Each pass is in at most one block. True in place of a literal if a pass can be in none.
        """
        cp, alone = self.model.cp, dict[Operation, Truth]()
        for x in (x for x in self.device.operations if x.role is not W):
            blocks = [block for pair, block in self.device.together.items() if x in pair]
            alone[x] = cp.new_bool_var(f"{x} alone") if blocks else True
            if blocks:
                cp.add_exactly_one(alone[x], *blocks)
        if self.device.together:
            forwards, backwards = (sum(one for x, one in alone.items() if x.role is role) for role in (F, B))
            cp.add(forwards == backwards)
        return alone

    def post(self) -> DeviceWork:
        """Post start = idle time + work before, by mode, for the first and last pass of each kind but W, by stage.

        Idle time does not decrease along the order.
        """
        cp, model, idle = self.model.cp, self.model, dict[Operation, cp_model.IntVar]()
        for x in self._first_and_last():
            idle[x] = cp.new_int_var(0, model.horizon, f"R{x} by mode")
            others = (y for y in self.device.operations if y != x)
            work = sum(self._work(y, self.device.before(y, x)) for y in others)
            cp.add(model.start[x] == idle[x] + work)
        for x, later in idle.items():
            for y, sooner in idle.items():
                ahead = self.device.before(y, x) if x != y else False
                if ahead is not False:
                    grows = cp.add(later >= sooner)
                    if ahead is not True:
                        grows.only_enforce_if(ahead)
        return DeviceWork(sum(map(self._least, self.device.operations)), list(idle.values()))

    def _first_and_last(self) -> Iterator[Operation]:
        lines: dict[tuple[object, int], list[Operation]] = {}
        for x in self.alone:
            lines.setdefault((x.role, x.stage), []).append(x)
        for line in lines.values():
            yield from dict.fromkeys((line[0], line[-1]))

    def _work(self, x: Operation, ahead: Truth) -> Linear:
        """Return the steps of x in its mode if `ahead`, that it runs before another pass, is true, else 0.

        A block counts as its forward: a backward inside one counts 0.
        """
        if x.role not in (B, W):
            steps = self._only(x)
            if x.role is not F:
                return steps * ahead
            return steps * ahead + (self._block(x) - steps) * self._both(ahead, negation(self.alone[x]))
        b, w, whole = self._backward(x._replace(role=B))
        # If the B of a W has run, the mode is decided.
        fused = self._both(ahead, self.model.fused.get((x.stage, x.microbatch), False))
        if x.role is W:
            return w * ahead - w * fused
        return b * ahead + (whole - b) * fused - whole * self._both(ahead, negation(self.alone[x]))

    def _least(self, x: Operation) -> Linear:
        """Return the least steps of x, by its block literal; a backward counts with its W, and the W itself 0."""
        if x.role is F:
            return self._block(x) + (self._only(x) - self._block(x)) * self.alone[x]
        if x.role not in (B, W):
            return self._only(x)
        b, w, whole = self._backward(x)
        return min(whole, b + w) * self.alone[x] if x.role is B else 0

    def _only(self, x: Operation) -> TimeSteps:
        """Return the steps of an operation with a single mode: a forward, copy, recomputation or collective."""
        return self.model.jobs.jobs[self.model.operations.jobs_of[x][0]].steps

    def _steps(self, x: Operation, kind: PassKind) -> TimeSteps | None:
        """Return the steps of the job of x with this pass kind; None if it has no such job."""
        jobs = (self.model.jobs.jobs[n] for n in self.model.operations.jobs_of.get(x, ()))
        return next((job.steps for job in jobs if job.task.of.kind is kind), None)

    def _backward(self, x: Operation) -> tuple[TimeSteps, TimeSteps, TimeSteps]:
        """Return the steps of B, of its W if that runs on this device, and of BW, as (b, w, whole).

        B takes as long as BW where there is none, and BW as long as B and W.
        """
        b, whole, weight = self._steps(x, B), self._steps(x, BW), x._replace(role=W)
        w = self._steps(weight, W) or 0 if weight in self.device.operations else 0
        b = b if b is not None else whole or 0
        return b, w, whole if whole is not None else b + w

    def _block(self, forward: Operation) -> TimeSteps:
        blocks = [self.model.block(*pair) for pair in self.device.together if pair[0] == forward]
        return min(blocks, default=self._only(forward))

    def _both(self, one: Truth, other: Truth) -> Truth:
        """Return the conjunction of two truth values: a constant, one of them, or a new literal if both are open."""
        if isinstance(one, bool):
            return other if one else False
        if isinstance(other, bool):
            return one if other else False
        cp = self.model.cp
        both = cp.new_bool_var("")
        cp.add_implication(both, one)
        cp.add_implication(both, other)
        cp.add_bool_or(both, negation(one), negation(other))
        return both
