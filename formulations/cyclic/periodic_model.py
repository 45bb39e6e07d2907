"""Cyclic scheduling model: one period of a block graph as a CP-SAT feasibility model, for a given length."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from ortools.sat.python import cp_model

from formulations.cyclic.block_graph import BlockGraph, BlockId
from formulations.cyclic.cyclic_order import Linear, post_order
from formulations.cyclic.pattern import Copy, Pattern
from formulations.jobs.quantities import TimeSteps
from formulations.variables.literals import Literal, Truth, negation
from pipesched.problem.quantities import DeviceId, Ticks


class PeriodicModel:
    """CP-SAT feasibility model (`cp`): `copies` micro-batches of `graph` repeat every `length` ticks.

    Times of the model, its attribute `length` too, are in steps, `scale` of them to a tick. Blocks of zero duration
    take one step: all of them together less than a tick, so that each has its place in the order and no length in ticks
    is lost. Its variables are those of `Period`, and `start`, the absolute start of each copy in `blocks`; `removed`
    has the literal of each W that runs in its full backward. By block index, `steps` are durations, `extra` what a full
    backward takes longer than its B. Each device counts time from the start of its first block of copy 0, its anchor,
    so that the anchor is first in its period and no block crosses the boundary. A block's absolute start is the
    anchor's, plus its position in the period, plus its repetition count times the length. With the length fixed all
    constraints are linear, memory too: the level at a block is the sum over all blocks of their change of memory times
    (1 if it is earlier in the period, else 0) - (its repetition count). Two blocks that overlap have one position, and
    neither is before the other.
    """

    def __init__(self, graph: BlockGraph, copies: int, length: Ticks) -> None:
        self.graph, self.copies = graph, copies
        fused = {f.backward: f.ticks for f in graph.fusions}
        zeros = sum(block.ticks == 0 for block in graph.blocks) + sum(ticks == 0 for ticks in fused.values())
        zeros += len({one.forward for one in graph.overlaps if one.ticks == 0})
        self.scale = zeros * copies + 1
        self.length = length * self.scale + self.scale - 1
        self.cp = cp_model.CpModel()
        self.blocks = [Copy(b, i) for b in range(len(graph.blocks)) for i in range(copies)]
        self.fused: dict[Copy, Truth] = {}
        self.removed: dict[Copy, Truth] = {}
        for fusion in graph.fusions:
            for i in range(copies):
                literal = self.cp.new_bool_var(f"fused{fusion.backward}.{i}")
                self.fused[Copy(fusion.backward, i)] = self.removed[Copy(fusion.weight, i)] = literal
        self.steps = [max(1, block.ticks * self.scale) for block in graph.blocks]
        self.extra = {b: max(1, ticks * self.scale) - self.steps[b] for b, ticks in fused.items()}
        self._most_repetitions = self._latency() // self.length + 2
        self.anchor = [Copy(min(blocks, key=self._depth), 0) if blocks else None for blocks in graph.on_device]
        self.place: dict[tuple[Copy, int], Linear] = {}
        self.repetitions: dict[tuple[Copy, int], Linear] = {}
        self.before: dict[tuple[Copy, Copy, int], Truth] = {}
        self.start: dict[Copy, Linear] = {}
        self.together = self._overlaps()
        self._variables()
        for device in range(len(graph.capacity)):
            post_order(self, device)
            self._memory(device)
        self._waits()

    def _latency(self) -> TimeSteps:
        """Return an upper limit of the steps that a micro-batch takes.

        Each precedence on its path may cost almost a period.
        """
        total = sum(self.steps) + sum(wait.lag * self.scale for wait in self.graph.waits)
        return total + len(self.graph.waits) * self.length

    def _depth(self, block: BlockId) -> tuple[int, BlockId]:
        return self.graph.depth[block], block

    def _overlaps(self) -> dict[tuple[Copy, Copy], cp_model.IntVar]:
        """Create a literal for every forward and backward that may run together, by (forward, backward), forward first.

        Records how much longer or shorter each of the two then is, in `_longer`.
        """
        self._longer: dict[Copy, list[Linear]] = {}
        together: dict[tuple[Copy, Copy], cp_model.IntVar] = {}
        for forward, backward, ticks in self.graph.overlaps:
            steps = max(1, ticks * self.scale)
            for f, b in product([Copy(forward, i) for i in range(self.copies)], range(self.copies)):
                other = Copy(backward, b)
                literal = self.cp.new_bool_var(f"{f}&{other}")
                together[f, other] = literal
                whole = self.steps[backward] + self.extra.get(backward, 0)
                self._longer.setdefault(f, []).append((steps - self.steps[forward]) * literal)
                self._longer.setdefault(other, []).append((steps - whole) * literal)
                if other in self.fused:
                    self.cp.add_implication(literal, self.fused[other])
        return together

    def duration(self, x: Copy) -> Linear:
        """Return the duration of a block in steps: a number, or an expression of its mode literals."""
        own = self.steps[x.block]
        longer = sum(self._longer.get(x, ()))
        if x in self.fused:
            return own + self.extra[x.block] * self.fused[x] + longer
        if x in self.removed:
            return own - own * self.removed[x]
        return own + longer

    def _variables(self) -> None:
        """Create each device's offset in time, and each block's position in the period and its repetition count.

        Times are in steps; position and count are by device of the block.
        """
        component = self.graph.component
        far = (self._most_repetitions + 1) * self.length
        offset: list[Linear] = [self.cp.new_int_var(-far, far, f"O{d}") for d in range(len(self.graph.capacity))]
        roots = {
            c: min((b for b in range(len(component)) if component[b] == c), key=self._depth) for c in set(component)
        }
        first_device = next(d for d, blocks in enumerate(self.graph.on_device) if blocks)
        main = component[self.graph.on_device[first_device][0]]
        for x in self.blocks:
            for device in self.graph.blocks[x.block].devices:
                if x == self.anchor[device]:
                    self.place[x, device], self.repetitions[x, device] = 0, 0
                else:
                    self.place[x, device] = self.cp.new_int_var(0, self.length, f"P{x}@{device}")
                    anchor = self.anchor[device]
                    assert anchor is not None
                    least = 0 if component[anchor.block] == component[x.block] else -self._most_repetitions
                    self.repetitions[x, device] = self.cp.new_int_var(least, self._most_repetitions, f"T{x}@{device}")
                at = offset[device] + self.place[x, device] + self.length * self.repetitions[x, device]
                if x in self.start:
                    self.cp.add(self.start[x] == at)
                else:
                    self.start[x] = at
        for chain, root in roots.items():
            # Chains are connected only by the orders of devices: shifting one by whole periods changes nothing.
            device = self.graph.blocks[root].devices[0]
            if chain == main:
                self.cp.add(offset[device] == 0)
            else:
                self.cp.add(self.repetitions[Copy(root, 0), device] == 0)

    def _memory(self, device: DeviceId) -> None:
        """Post that the level at the start of each block of a device, and what the block takes, fit its capacity."""
        capacity = self.graph.capacity[device]
        if capacity is None:
            return
        blocks = [Copy(b, i) for b in self.graph.on_device[device] for i in range(self.copies)]
        change = {x: self.graph.blocks[x.block].memory[device] for x in blocks}
        constant = sum(-change[x].total * self.repetitions[x, device] for x in blocks)
        whole = {fusion.backward: fusion.taken for fusion in self.graph.fusions}
        for x in blocks:
            alone = change[x].at_start
            if max(alone, whole.get(x.block, 0)) <= 0:
                continue
            level = constant + sum(change[y].total * self.before[y, x, device] for y in blocks if y != x)
            taken: Linear = alone
            if x in self.fused:
                taken = alone + (whole[x.block] - alone) * self.fused[x]
            row = self.cp.add(level + taken <= capacity)
            if x in self.removed:
                row.only_enforce_if(negation(self.removed[x]))

    def _waits(self) -> None:
        for before, after, lag in self.graph.waits:
            for i in range(self.copies):
                one, other = Copy(before, i), Copy(after, i)
                self.cp.add(self.start[other] >= self.start[one] + self.duration(one) + lag * self.scale)
        removable = {f.weight for f in self.graph.fusions}
        for b in range(len(self.graph.blocks)):
            if b in removable:
                continue
            # Micro-batches are identical, so the copies of a block run in order.
            for i in range(1, self.copies):
                one, other = Copy(b, i - 1), Copy(b, i)
                self.cp.add(self.start[other] >= self.start[one] + self.duration(one))
            if self.copies > 1:
                last, first = Copy(b, self.copies - 1), Copy(b, 0)
                self.cp.add(self.start[first] + self.length >= self.start[last] + self.duration(last))

    def hint(self, pattern: Pattern) -> None:
        """Give CP-SAT the order, repetition counts and modes of a known pattern, with as many copies, as a hint."""
        pattern = pattern.from_anchors(self.anchor)
        for device, cyclic_order in enumerate(pattern.cyclic_orders):
            where = {x: n for n, x in enumerate(cyclic_order)}
            for (x, y, d), literal in self.before.items():
                if d == device and isinstance(literal, cp_model.IntVar):
                    overlap = (x, y) in pattern.overlapped or (y, x) in pattern.overlapped
                    self.cp.add_hint(literal, where[x] < where[y] and not overlap)
            for x in cyclic_order:
                repetitions = self.repetitions[x, device]
                if isinstance(repetitions, cp_model.IntVar):
                    self.cp.add_hint(repetitions, pattern.repetitions[x][device])
        for x, literal in self.fused.items():
            if isinstance(literal, cp_model.IntVar):
                self.cp.add_hint(literal, x in pattern.fused)
        for pair, block in self.together.items():
            self.cp.add_hint(block, pair in pattern.overlapped)

    def decode(self, value_of: Callable[[Literal], int]) -> Pattern:
        """Return the pattern of a solution; `value_of` returns the value of a variable in it."""

        def value(x: Linear | Truth) -> int:
            return int(x) if isinstance(x, int) else value_of(x)  # type: ignore[arg-type]

        overlapped = frozenset(pair for pair, literal in self.together.items() if value(literal))
        cyclic_orders = []
        for device, blocks in enumerate(self.graph.on_device):
            blocks_there = [Copy(b, i) for b in blocks for i in range(self.copies)]
            ahead = {x: sum(value(self.before[y, x, device]) for y in blocks_there if y != x) for x in blocks_there}
            second = {backward for _, backward in overlapped}
            cyclic_orders.append(tuple(sorted(blocks_there, key=lambda x: (ahead[x], x in second))))
        repetitions: dict[Copy, dict[int, int]] = {x: {} for x in self.blocks}
        for (x, device), count in self.repetitions.items():
            repetitions[x][device] = value(count)
        fused = frozenset(x for x, literal in self.fused.items() if value(literal))
        return Pattern(self.graph, self.copies, tuple(cyclic_orders), repetitions, fused, overlapped)
