"""The rows of the linear relaxation: inequalities that the times and orders of every schedule keep.

Each is stated as terms and a number: the terms, times the values of their variables, add up to no less than the number.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.relaxation.known_order import KnownOrder
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Objective, Problem
from pipesched.results.relaxation_rows import RowKind

# start, idle: the time and the idle time before an operation. before: 1 if the first of two operations runs first,
# else 0. fused: 1 if a backward is fused. value: of the objective. idled, begins: the idle time and the start of a
# device.
Variable = tuple[str, *tuple[object, ...]]
VALUE: Variable = ("value",)
Terms = list[tuple[Variable, int]]


class Row(NamedTuple):
    """The terms, each a variable with its coefficient, and the number that they add up to at least."""

    terms: Terms
    at_least: int
    equal: bool = False  # whether the terms add up to just the number


class Rows:
    """The rows of a problem, by kind and operations. `RefusedEvidenceError` for those that not every schedule keeps."""

    def __init__(self, problem: Problem) -> None:
        if any(stage.overlapped is not None for stage in problem.stages):
            raise NotCoveredError("the check does not cover linear relaxations with overlapped blocks")
        self._problem, self._order = problem, KnownOrder(problem)
        self._splittable = problem.stages[0].weight is not None
        self._lags = self._needs()
        self._stated: dict[RowKind, Callable[..., Row]] = {
            RowKind.FOLLOWS: self._follows,
            RowKind.IDLE: self._idle,
            RowKind.IDLE_GROWS: self._idle_grows,
            RowKind.MEMORY: self._memory,
            RowKind.FUSED: self._fused,
            RowKind.ENDS: self._ends,
            RowKind.BEGINS: self._begins,
            RowKind.IDLED: self._idled,
            RowKind.DEVICE: self._device,
        }

    def row(self, kind: RowKind, operations: tuple[Pass, ...]) -> Row:
        for x in operations:
            in_it = 0 <= x.stage < len(self._problem.stages) and x.microbatch in self._problem.microbatches_of[x.stage]
            if not in_it or (x.kind is W and not self._splittable):
                raise RefusedEvidenceError(f"there is no {x}")
        return self._stated[kind](*operations)

    def latest(self) -> int:
        """No start need be later: all passes and transfers one after another.

        For the span too, with the first start at 0: times that keep the span are longest paths of the order, in which
        each pass and transfer counts once at most.
        """
        stages, total = self._problem.stages, sum(lag for lag in self._lags.values())
        for stage, walked in zip(stages, self._problem.microbatches_of, strict=True):
            split = 0 if stage.weight is None else stage.backward + stage.weight
            total += len(walked) * (stage.forward + max(stage.fused, split))
        return total

    def _needs(self) -> dict[tuple[Pass, Pass], int]:
        """What each operation waits for, and how long its tensor is on its way."""
        problem, found = self._problem, dict[tuple[Pass, Pass], int]()
        for chain in problem.placement.chains:
            for j in problem.microbatches_of[chain[0]]:
                for one, other in pairwise(chain):
                    found[Pass(F, other, j), Pass(F, one, j)] = problem.lag(one, other)
                    found[Pass(B, one, j), Pass(B, other, j)] = problem.lag(other, one)
                for stage in chain:
                    found[Pass(B, stage, j), Pass(F, stage, j)] = 0
                    if self._splittable:
                        found[Pass(W, stage, j), Pass(B, stage, j)] = 0
        return found

    def _device_of(self, x: Pass) -> int:
        return self._problem.placement.stage_device[x.stage]

    def _on_device(self, device: int) -> list[Pass]:
        kinds = (F, B, W) if self._splittable else (F, B)
        stages = self._problem.placement.stages_of[device]
        return [Pass(kind, s, j) for s in stages for kind in kinds for j in self._problem.microbatches_of[s]]

    def _may_fuse(self, x: Pass) -> bool:
        """Whether the mode of the backward is open."""
        return self._splittable and not self._order.always_split[x.stage]

    def _duration(self, x: Pass) -> tuple[int, Terms]:
        """A number, and what is added to it where the backward is fused."""
        stage, fused = self._problem.stages[x.stage], ("fused", x.stage, x.microbatch)
        if x.kind is F:
            return stage.forward, []
        if x.kind is W:
            assert stage.weight is not None
            return stage.weight, [(fused, -stage.weight)] if self._may_fuse(x) else []
        if not self._splittable:
            return stage.fused, []
        return stage.backward, [(fused, stage.fused - stage.backward)] if self._may_fuse(x) else []

    def _least(self, x: Pass) -> int:
        """The least that an operation computes, whatever the mode."""
        ticks, more = self._duration(x)
        return ticks + sum(min(0, change) for _, change in more)

    def _before(self, x: Pass, y: Pass) -> tuple[int, Terms]:
        """1 if x runs before y, else 0: as a number, and what is added to it."""
        if self._order.first(x, y):
            return 1, []
        if self._order.first(y, x):
            return 0, []
        return (0, [(("before", x, y), 1)]) if x < y else (1, [(("before", y, x), -1)])

    def _sum_before(self, x: Pass, amounts: dict[Pass, int]) -> tuple[int, Terms]:
        """The amounts of all operations of the device that run before x."""
        total, terms = 0, Terms()
        for y, amount in amounts.items():
            if y != x and amount:
                number, more = self._before(y, x)
                total += amount * number
                terms += [(variable, amount * sign) for variable, sign in more]
        return total, terms

    def _same_device(self, x: Pass, y: Pass) -> None:
        if x == y or self._device_of(x) != self._device_of(y):
            raise RefusedEvidenceError(f"{x} and {y} are not two operations of one device")

    def _follows(self, x: Pass, y: Pass) -> Row:
        lag = self._lags.get((x, y))
        if lag is None:
            self._same_device(x, y)
            if not self._order.first(y, x):
                raise RefusedEvidenceError(f"{x} need not follow {y}")
            lag = 0
        ticks, more = self._duration(y)
        terms = [(("start", x), 1), (("start", y), -1), *((variable, -change) for variable, change in more)]
        return Row(terms, ticks + lag)

    def _idle(self, x: Pass) -> Row:
        """Only the least work counts, so that what is called idle time may be work too."""
        work = {y: self._least(y) for y in self._on_device(self._device_of(x))}
        total, terms = self._sum_before(x, work)
        return Row([(("start", x), 1), (("idle", x), -1), *((v, -c) for v, c in terms)], total, equal=True)

    def _idle_grows(self, x: Pass, y: Pass) -> Row:
        self._same_device(x, y)
        if not self._order.first(y, x):
            raise RefusedEvidenceError(f"{x} need not follow {y}")
        return Row([(("idle", x), 1), (("idle", y), -1)], 0)

    def _memory(self, x: Pass) -> Row:
        room = self._order.room[self._device_of(x)]
        if room is None:
            raise RefusedEvidenceError(f"the memory of device {self._device_of(x)} has no limit")
        changes = {y: self._takes(y) - self._gives(y) for y in self._on_device(self._device_of(x))}
        total, terms = self._sum_before(x, changes)
        if x.kind is B and self._may_fuse(x):
            terms.append((("fused", x.stage, x.microbatch), -self._takes(x)))
        return Row([(v, -c) for v, c in terms], total + self._takes(x) - room)

    def _takes(self, x: Pass) -> int:
        stage = self._problem.stages[x.stage]
        if x.kind is B:
            return max(0, -stage.freed) if self._splittable else 0
        return stage.activation if x.kind is F else 0

    def _gives(self, x: Pass) -> int:
        """Of a fused backward this is B and W together, all of the activation and what B takes."""
        stage = self._problem.stages[x.stage]
        if x.kind is F:
            return 0
        if not self._splittable:
            return stage.activation
        return max(0, stage.freed) if x.kind is B else stage.activation - stage.freed

    def _fused(self, x: Pass, z: Pass) -> Row:
        """Not fused, or z before the backward, or the weight pass before z."""
        weight = Pass(W, x.stage, x.microbatch)
        self._same_device(x, z)
        if x.kind is not B or not self._splittable or z == weight or not self._may_fuse(x):
            raise RefusedEvidenceError(f"{x} is no backward that may be fused, or {z} belongs to it")
        number, terms = self._before(x, z)
        number2, terms2 = self._before(weight, z)
        fused = ("fused", x.stage, x.microbatch)
        return Row([(fused, -1), *((v, -c) for v, c in terms), *terms2], number - number2 - 1)

    def _begin(self, device: int) -> Terms:
        """The start of a device: that of the forward known to be its first, or a variable of its own."""
        if self._problem.objective is not Objective.SPAN:
            return []
        on_it = [Pass(F, s, walked.start) for s, walked in self._walked(device)]
        first = [x for x in on_it if all(x == y or self._order.first(x, y) for y in on_it)]
        return [(("start", first[0]), 1)] if first else [(("begins", device), 1)]

    def _walked(self, device: int) -> list[tuple[int, range]]:
        stages = self._problem.placement.stages_of[device]
        return [(s, self._problem.microbatches_of[s]) for s in stages if len(self._problem.microbatches_of[s])]

    def _ends(self, x: Pass) -> Row:
        ticks, more = self._duration(x)
        ended = [(("start", x), -1), *((variable, -change) for variable, change in more)]
        return Row([(VALUE, 1), *ended, *self._begin(self._device_of(x))], ticks)

    def _begins(self, x: Pass) -> Row:
        return Row([(("start", x), 1), *((v, -c) for v, c in self._begin(self._device_of(x)))], 0)

    def _idled(self, x: Pass) -> Row:
        return Row([(("idled", self._device_of(x)), 1), (("idle", x), -1)], 0)

    def _device(self, x: Pass) -> Row:
        device = self._device_of(x)
        work = sum(self._least(y) for y in self._on_device(device))
        return Row([(VALUE, 1), (("idled", device), -1), *self._begin(device)], work)
