"""Operations of a schedule with open modes: local search decides which backwards are full and which passes form blocks.

An operation is F, B or W of a micro-batch on a stage. B and W joined are a full (fused) backward; F and a full backward
joined are an overlapped block. The state of a search is the set of joined operations, and an order of those that are
not joined to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulations.variables.operations import Operation
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import block_ticks
from solver.local_search.units.order_units import Orders, UnitId, operation_of

# Absent index: not joined to an operation, or no such operation.
NONE = -1


def modes_matter(problem: Problem) -> bool:
    """True if a mode can gain: some full backward over B directly followed by W, or some block over its two passes.

    Where backwards may be split, a full one gains on a stage unless `fused_is_dominated` is true of it; a block gains
    if it is shorter than its two passes in turn.
    """
    view = problem.pipeline
    fused = view.splits and not all(fused_is_dominated(problem, stage) for stage in view.stages)
    return fused or any(view.saved_by_block(*pair) > 0 for pair in view.pairs_on_devices())


def dominated_split(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule with each full backward outside of blocks replaced by B, W where that is never worse."""
    if not problem.pipeline.splits or not schedule.fused:
        return schedule
    split = [fused_is_dominated(problem, stage) for stage in range(problem.placement.stages)]

    def parts(slot: Slot) -> tuple[Slot, ...]:
        p = slot[0]
        if len(slot) > 1 or p.kind is not BW or not split[p.stage]:
            return (slot,)
        return (p._replace(kind=B),), (p._replace(kind=W),)

    orders = tuple(tuple(part for slot in order for part in parts(slot)) for order in schedule.orders)
    return Schedule(orders, schedule.name)


def _on_device(problem: Problem, device: DeviceId) -> Iterator[Operation]:
    """Yield the operations (F, B and, if backwards split, W) of a device's stages and micro-batches.

    They are in the order of stages, then of these roles, then of micro-batches.
    """
    for stage in problem.placement.stages_of[device]:
        for role in (F, B, W) if problem.pipeline.splits else (F, B):
            yield from (Operation(role, stage, j) for j in problem.microbatches_of[stage])


def _line(problem: Problem, x: Operation) -> tuple[PassKind, int]:
    """Return a key that is equal for operations that must keep micro-batch order.

    It is the role and the stage or, where chains share a queue, the queue of an F or B.
    """
    return x.role, x.stage if x.role is W else problem.queue_of[x.stage]


class Operations:
    """Operations of a schedule, by number, and how the schedule joins them.

    `operations[n]` is operation n, `number` the inverse. By number: the `device`, the `line` (a role on a stage or its
    queue, whose operations keep the order of micro-batches), and `needs`, the (operation, lag in ticks) pairs of its
    predecessors. `ticks`, `takes` and `gives` are the duration of an operation by itself, the memory that it takes at
    its start, and what it frees at its end; `whole_ticks`, `whole_takes` and `whole_gives` are those of a B joined to
    its W.

    `orders` has the operations of each device, in order, that are not joined to a B. `lines[l]` is the key of line l:
    the role, and the stage or queue. `weight[n]` is the W of a B, and `mate[n]` the F joined to a B; both -1 where
    there is none. `fused[n]` is True for a B that has its W joined to it, or has none.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.name = problem, schedule.name
        on_devices = [(device, x) for device in range(problem.devices) for x in _on_device(problem, device)]
        self.device, self.operations = [device for device, _ in on_devices], [x for _, x in on_devices]
        self.number = {x: n for n, x in enumerate(self.operations)}
        lines = {key: n for n, key in enumerate(dict.fromkeys(_line(problem, x) for x in self.operations))}
        self.lines: list[tuple[PassKind, int]] = list(lines)
        self.line = [lines[_line(problem, x)] for x in self.operations]
        self.weight = [
            self.number.get(Operation(W, x.stage, x.microbatch), NONE) if x.role is B else NONE for x in self.operations
        ]
        self.needs = [self._needs_of(x) for x in self.operations]
        self._read_costs()
        self._read(dominated_split(problem, schedule))

    @property
    def room(self) -> Sequence[MemorySteps | None]:
        """Memory capacity of each device for activations, in steps of memory; None without a limit."""
        return self.problem.room

    def _needs_of(self, x: Operation) -> list[tuple[UnitId, Ticks]]:
        needs = self.problem.network.predecessors(Pass(self._kind(x), x.stage, x.microbatch), ())
        return [(self.number[operation_of(before)], lag) for before, lag in needs]

    def _kind(self, x: Operation) -> PassKind:
        return self.problem.network.gradient if x.role is B else x.role

    def _read_costs(self) -> None:
        problem = self.problem
        alone = [Pass(self._kind(x), x.stage, x.microbatch) for x in self.operations]
        whole = [p._replace(kind=BW) if p.kind is B else p for p in alone]
        self.ticks, self.whole_ticks = ([problem.duration(p) for p in kinds] for kinds in (alone, whole))
        changes, whole_changes = ([problem.network.change[p[:2]] for p in kinds] for kinds in (alone, whole))
        self.takes, self.whole_takes = ([change[0] for change in each] for each in (changes, whole_changes))
        self.gives, self.whole_gives = ([-change[1] for change in each] for each in (changes, whole_changes))

    def _read(self, schedule: Schedule) -> None:
        self.orders: Orders = []
        self.fused = [self._kind(x) is BW for x in self.operations]
        self.mate = [NONE] * len(self.operations)
        for slots in schedule.orders:
            order: list[int] = []
            for slot in slots:
                numbers = [self.number[operation_of(p)] for p in slot]
                for p, n in zip(slot, numbers, strict=True):
                    self.fused[n] = p.kind is BW
                if block_ticks(self.problem, slot) is not None:
                    forward, backward = numbers
                    self.mate[backward] = forward
                    numbers = [backward]
                order += numbers
            self.orders.append(order)

    def schedule(
        self, orders: Sequence[Sequence[UnitId]], fused: Sequence[bool | int], mate: Sequence[UnitId]
    ) -> Schedule:
        """Return the schedule of these orders of operation numbers on the devices, and these modes of operations.

        `fused[n]` is True for a B joined to its W or without one; `mate[n]` is the F joined to a B in a block, else -1.
        """
        return Schedule(tuple(tuple(self._slot(n, fused, mate) for n in order) for order in orders), "pipesched")

    def _slot(self, number: UnitId, fused: Sequence[bool | int], mate: Sequence[UnitId]) -> Slot:
        x = self.operations[number]
        p = Pass(BW if fused[number] else x.role, x.stage, x.microbatch)
        if mate[number] == NONE:
            return (p,)
        forward = self.operations[mate[number]]
        return Pass(F, forward.stage, forward.microbatch), p
