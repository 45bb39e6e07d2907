"""The modes of a device inside a window, as CP-SAT variables: which backwards are fused, what forms a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ortools.sat.python import cp_model

from formulations.variables.operations import Operation
from formulations.window.order_units import Units, operation_of
from formulations.window.placed import Placed
from pipesched.problem.mode_gains import block_length, saved_by_block
from pipesched.problem.passes import BW, B, F, Pass, Slot, W

# A forward and a backward may form a block if no more than so many operations are between them in the order known.
_NEAR = 12


class MemoryEvent(NamedTuple):
    """What is taken at a time, or given back if negative."""

    when: cp_model.LinearExprT
    amount: int


@dataclass
class Choice:
    """When an operation runs, and the ways it may run, of which one is chosen.

    `alone` is by itself, `whole` a B and its W in one go, `pairs` the blocks with each other operation.
    """

    start: cp_model.IntVar
    end: cp_model.IntVar
    alone: cp_model.IntVar | None = None
    whole: cp_model.IntVar | None = None
    pairs: dict[Operation, cp_model.IntVar] = field(default_factory=dict)


class ModeChoices:
    """The operations of units that one device runs in a window; `held` are the units in the order known.

    The W of a fused backward has no duration and runs at the end of the backward.
    """

    def __init__(self, cp: cp_model.CpModel, units: Units, held: Sequence[int], horizon: int) -> None:
        self.cp, self.units, self.problem, self.horizon = cp, units, units.problem, horizon
        self.passes = {operation_of(p): p for n in held for p in units.slots[n]}
        self._blocks = {tuple(map(operation_of, units.slots[n])) for n in held}
        hidden = [x._replace(role=W) for x, p in self.passes.items() if p.kind is BW and self.problem.splittable]
        self.of = {
            x: Choice(cp.new_int_var(0, horizon, f"S{x}"), cp.new_int_var(0, horizon, f"E{x}"))
            for x in (*self.passes, *hidden)
        }
        self.intervals: list[cp_model.IntervalVar] = []
        for forward, backward in self._pairs():
            self._pair(forward, backward)
        for x in self.of:
            self._ways(x)
        cp.add_no_overlap(self.intervals)
        for one, other in self._in_line():
            cp.add(self.of[other].start >= self.of[one].end)

    def _joinable(self, backward: Operation) -> bool:
        """Whether a backward may run fused: it and its W are both in the window, or it has none."""
        return not self.problem.splittable or backward._replace(role=W) in self.of

    def _pairs(self) -> Iterator[tuple[Operation, Operation]]:
        """What may form a block: what does so now, and what is near and gains by it."""
        chain, places = self.problem.placement.chain_index, list(enumerate(self.passes))
        for at, f in places:
            for there, b in places:
                if (f.role, b.role) != (F, B) or not self._joinable(b):
                    continue
                # On a chain a forward precedes the backwards of its own micro-batch and of later ones.
                if chain[f.stage] == chain[b.stage] and f.microbatch <= b.microbatch:
                    continue
                near = abs(at - there) <= _NEAR and saved_by_block(self.problem, f.stage, b.stage) > 0
                if near or (f, b) in self._blocks:
                    yield f, b

    def _pair(self, forward: Operation, backward: Operation) -> None:
        ticks = block_length(self.problem, forward.stage, backward.stage)
        if ticks is None:
            return
        one, other = self.of[forward], self.of[backward]
        pair = self._literal((forward, backward) in self._blocks)
        self.cp.add(one.start == other.start).only_enforce_if(pair)
        self.cp.add(one.end == other.end).only_enforce_if(pair)
        self.intervals.append(self.cp.new_optional_interval_var(one.start, ticks, one.end, pair, ""))
        one.pairs[backward] = other.pairs[forward] = pair

    def _literal(self, known: bool) -> cp_model.IntVar:
        literal = self.cp.new_bool_var("")
        self.cp.add_hint(literal, known)
        return literal

    def _ways(self, x: Operation) -> None:
        """The intervals that an operation may have, of which it has one."""
        choice, known = self.of[x], self.passes.get(x)
        in_block = any(x in block for block in self._blocks if len(block) == 2)
        if x.role is W and x._replace(role=B) in self.of:
            return  # with its B
        if x.role is not B or self.problem.splittable:
            choice.alone = self._literal(known is not None and known.kind is not BW and not in_block)
            self._interval(x, x.role, choice.alone)
        if x.role is B and self._joinable(x):
            choice.whole = self._literal(known is not None and known.kind is BW and not in_block)
            self._interval(x, BW, choice.whole)
        weight = self.of.get(x._replace(role=W)) if x.role is B else None
        if weight is not None:
            assert choice.alone is not None
            weight.alone = choice.alone
            self._interval(x._replace(role=W), W, choice.alone)
            self.cp.add(weight.start >= choice.end)
            for end in (weight.start, weight.end):
                self.cp.add(end == choice.end).only_enforce_if(~choice.alone)
        self.cp.add_exactly_one(way for way in (choice.alone, choice.whole, *choice.pairs.values()) if way is not None)

    def _interval(self, x: Operation, kind: object, way: cp_model.IntVar) -> None:
        choice, ticks = self.of[x], self.problem.duration(Pass(kind, x.stage, x.microbatch))  # type: ignore[arg-type]
        self.intervals.append(self.cp.new_optional_interval_var(choice.start, ticks, choice.end, way, ""))

    def _in_line(self) -> Iterator[tuple[Operation, Operation]]:
        """Operations of one role and stage, in the order known; not weight passes, which may lose their place."""
        lines: dict[tuple[object, int], list[Operation]] = {}
        for x in self.passes:
            if x.role is not W:
                lines.setdefault((x.role, self.problem.queue_of[x.stage]), []).append(x)
        return (pair for line in lines.values() for pair in pairwise(line))

    def memory_changes(self) -> list[MemoryEvent]:
        """A W gives back what B did not. Joined to a B that would have taken more, it takes that at the end."""
        changes = []
        for x, choice in self.of.items():
            kind = BW if x.role is B and not self.problem.splittable else x.role
            at_start, at_end = self.problem.network.change[kind, x.stage]
            if at_start:
                changes.append(MemoryEvent(self._taking(choice), at_start))
            if at_end:
                changes.append(MemoryEvent(choice.end, at_end))
        return changes

    def _taking(self, choice: Choice) -> cp_model.IntVar:
        if choice.whole is None or choice.alone is None:
            return choice.start
        when = self.cp.new_int_var(0, self.horizon, "")
        self.cp.add(when == choice.start).only_enforce_if(choice.alone)
        self.cp.add(when == choice.end).only_enforce_if(~choice.alone)
        return when

    def hint(self, placed: Placed) -> None:
        """The times known."""
        for x, choice in self.of.items():
            number = self.units.holding.get(x)
            if number is None:
                times = (placed.end(self.units.holding[x._replace(role=B)]),) * 2
            else:
                times = placed.start[number], placed.end(number)
            self.cp.add_hint(choice.start, times[0])
            self.cp.add_hint(choice.end, times[1])

    def slots(self, value_of: Callable[[cp_model.IntVar], int]) -> list[Slot]:
        """What the device runs in a solution, in order."""
        found: list[tuple[tuple[int, int], Slot]] = []
        for x, choice in self.of.items():
            when = value_of(choice.start), value_of(choice.end)
            backward = next((b for b, pair in choice.pairs.items() if value_of(pair)), None)
            own = Pass(x.role, x.stage, x.microbatch)
            if x.role is F and backward is not None:
                found.append((when, (own, Pass(BW, backward.stage, backward.microbatch))))
            elif x.role is F or (choice.alone is not None and value_of(choice.alone)):
                found.append((when, (own,)))
            elif x.role is B and backward is None:
                found.append((when, (own._replace(kind=BW),)))
        return [slot for _, slot in sorted(found, key=lambda one: one[0])]
