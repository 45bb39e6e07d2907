"""Check of a period: the repeated order of a schedule can run a micro-batch in every period.

A part of every device's order that has each pass of k micro-batches once may be repeated for ever. A length of the
repetition is feasible if the starts of its slots can be chosen so that no cycle of precedences, from one repetition
into later ones, takes longer. Memory is that of the part plus all that earlier repetitions left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from pipesched.problem.passes import BW, B, F, Pass, PassKind, Slot, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.schedule.schedule import Schedule
from pipesched.validation.pass_rules import passing_memory

# A slot of the repeated part: an index in `_Part.slots`, which has those of all devices, device by device.
SlotId: TypeAlias = int
_MOST_COPIES = 8
# Slots of a part, beyond which the check takes long.
_MOST_SLOTS = 3_000


class _Place(NamedTuple):
    """The place of a pass in a repetition.

    It is its slot (`node`), and the `number` of the micro-batch that it runs in the first repetition. Micro-batches are
    numbered from 0 on their chain.
    """

    node: SlotId
    number: int


class _Part:
    """The repeated part of every device's order, `copies` micro-batches of each chain long.

    `parts` has the slots of each device, which `slots` lists for all devices together. `arcs` yields the precedences
    between slots, `place` the slot of a pass, and `fits` is True if the part, repeated, never exceeds a device's
    memory.
    """

    def __init__(self, problem: Problem, parts: Sequence[Sequence[Slot]], copies: int) -> None:
        self._problem, self._copies = problem, copies
        self.slots = [slot for part in parts for slot in part]
        self._device = [device for device, part in enumerate(parts) for _ in part]
        self._places = {
            (kind, p.stage, _index(problem, p) % copies): _Place(node, _index(problem, p))
            for node, slot in enumerate(self.slots)
            for p in slot
            for kind in _roles(p.kind)
        }

    def place(self, kind: PassKind, stage: StageId, index: int) -> tuple[SlotId, int]:
        """Return the slot of the pass of a chain's micro-batch number `index`, and its repetition.

        The latter is how many repetitions after the first one it runs, negative before it.
        """
        found = self._places[kind, stage, index % self._copies]
        return found.node, (index - found.number) // self._copies

    def arcs(self) -> Iterator[tuple[SlotId, SlotId, Ticks, int]]:
        """Yield (slot, slot that waits for it, least ticks between their starts, repetitions between them).

        The number is 1 if the second slot runs in the repetition after that of the first one, negative if in an earlier
        one.
        """
        first: dict[int, int] = {}
        for node, device in enumerate(self._device):
            after = node + 1 < len(self.slots) and self._device[node + 1] == device
            first.setdefault(device, node)
            yield node, node + 1 if after else first[device], self._ticks(node), 0 if after else 1
        for node, slot in enumerate(self.slots):
            for p in slot:
                for kind, stage, lag in self._needs(p):
                    sooner, ahead = self.place(kind, stage, _index(self._problem, p))
                    if sooner != node or ahead:
                        yield sooner, node, self._ticks(sooner) + lag, -ahead

    def _needs(self, p: Pass) -> Iterator[tuple[PassKind, StageId, Ticks]]:
        """Yield kind and stage of the passes of the same micro-batch that `p` waits for, with the lag in ticks.

        B stands for the gradient of the next stage, whichever of B and BW computes it.
        """
        (chain,) = (chain for chain in self._problem.placement.chains if p.stage in chain)
        at, lag = chain.index(p.stage), self._problem.lag
        if p.kind is W:
            yield B, p.stage, 0
        elif p.kind is F and at:
            yield F, chain[at - 1], lag(chain[at - 1], p.stage)
        elif p.kind in (B, BW):
            yield F, p.stage, 0
            if at + 1 < len(chain):
                yield B, chain[at + 1], lag(chain[at + 1], p.stage)

    def _ticks(self, node: SlotId) -> Ticks:
        """Return the ticks of a slot: of its pass, or of the block of its two passes."""
        slot = self.slots[node]
        if len(slot) == 2:
            forward, backward = (self._problem.stages[one.stage] for one in slot)
            overlapped = forward.block_with(backward)
            assert overlapped is not None
            return overlapped
        return self._problem.stages[slot[0].stage].ticks(slot[0].kind)

    def fits(self) -> bool:
        """Return True if no device ever exceeds its memory."""
        rooms = [self._problem.room[device] for device in self._device]
        return all(room is None or self._level(node) <= room for node, room in enumerate(rooms))

    def _level(self, node: SlotId) -> MemorySteps:
        """Return the memory level of a slot's device while the slot runs.

        It includes what all earlier repetitions left.
        """
        total = sum(passing_memory(self._problem, p.kind, p.stage)[0] for p in self.slots[node])
        for (kind, stage, residue), forward in self._places.items():
            if kind is not F or self._device[forward.node] != self._device[node]:
                continue
            own = self._problem.stages[stage]
            begun = self._copies_begun(forward, node + 1)
            backward, last = self._places[B, stage, residue], self._places[W, stage, residue]
            total += (own.activation - own.freed) * (begun - self._copies_begun(last, node))
            if last == backward:
                total += own.freed * (begun - self._copies_begun(backward, node))
            else:
                total += own.freed * (begun - self._copies_begun(backward, node + (own.freed < 0)))
        return total

    def _copies_begun(self, place: _Place, before: SlotId) -> int:
        """Return how many micro-batches with the pass's number, modulo `copies`, have begun it before slot `before`.

        It counts from the start of the schedule on, in the first repetition.
        """
        return place.number // self._copies + (1 if place.node < before else 0)


def repeats_every(problem: Problem, schedule: Schedule, period: Ticks) -> bool:
    """Return True if some part of the order, repeated for ever, runs a micro-batch every `period` ticks on average.

    Only for problems whose passes are single tasks and whose micro-batches are equal; else False. Parts of up to eight
    micro-batches of each chain are tried, fewer in large problems: False may mean that only longer parts do.
    """
    if not problem.network.one_task_each or problem.walks.scale:
        return False
    chains = sum(bool(problem.microbatches_of[chain[0]]) for chain in problem.placement.chains)
    orders = [list(_slots(problem, order)) for order in schedule.orders]
    slots = 3 * sum(map(bool, problem.microbatches_of))
    for copies in range(1, min(_MOST_COPIES, _MOST_SLOTS // max(1, slots)) + 1):
        parts = [_part_of(problem, device, order, copies) for device, order in enumerate(orders)]
        if all(part is not None for part in parts):
            part = _Part(problem, [one for one in parts if one is not None], copies)
            if part.fits() and _possible(part, period * copies * chains):
                return True
    return False


def _slots(problem: Problem, order: Sequence[Slot]) -> Iterator[Slot]:
    """Yield the slots of an order; two passes of one slot that run in turn become two slots."""
    for slot in order:
        if len(slot) == 2 and not problem.stages[slot[0].stage].in_blocks:
            yield from ((p,) for p in slot)
        else:
            yield slot


def _part_of(problem: Problem, device: DeviceId, order: Sequence[Slot], copies: int) -> list[Slot] | None:
    """Return the slots around the middle that have each pass of `copies` micro-batches once; None if there are none."""
    stages = [stage for stage in problem.placement.stages_of[device] if problem.microbatches_of[stage]]
    begins = sorted(range(len(order)), key=lambda at: abs(2 * at - len(order)))
    for begin in begins:
        seen: dict[tuple[PassKind, int, int], int] = {}
        for end in range(begin, len(order)):
            keys = [(kind, p.stage, _index(problem, p) % copies) for p in order[end] for kind in _roles(p.kind)]
            if any(key in seen for key in keys):
                break
            seen |= dict.fromkeys(keys, 1)
            if len(seen) == 3 * copies * len(stages):
                return list(order[begin : end + 1])
    return None


def _roles(kind: PassKind) -> tuple[PassKind, ...]:
    """Return the kinds that a pass counts as; a full backward is both B and W."""
    return (B, W) if kind is BW else (kind,)


def _index(problem: Problem, p: Pass) -> int:
    """Return the position of a pass's micro-batch among those of its chain."""
    return p.microbatch - problem.microbatches_of[p.stage].start


def _possible(part: _Part, length: Ticks) -> bool:
    """Return True if starts can be chosen with a repetition every `length` ticks.

    They can if no cycle is longer than the repetitions that it spans.
    """
    arcs = [(sooner, later, ticks - ahead * length) for sooner, later, ticks, ahead in part.arcs()]
    starts = [0] * len(part.slots)
    for _ in range(len(starts) + 1):
        changed = False
        for sooner, later, ticks in arcs:
            if starts[sooner] + ticks > starts[later]:
                starts[later], changed = starts[sooner] + ticks, True
        if not changed:
            return True
    return False
