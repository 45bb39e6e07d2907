"""Choice of activations to offload or recompute, so that an order of passes fits the memory.

Along the order of each device, whenever a pass takes more than is left, the activation whose backward is farthest is
offloaded or recomputed (Belady, IBM Systems Journal 5, 1966). Reloads run as early as memory admits, at most a given
number of passes before their backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, Pass, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MicrobatchId, StageId
from pipesched.schedule.schedule import Schedule, schedule_of

# A mode in which an activation occupies less memory, None to keep it.
Mode = PassKind | None


class Rule(NamedTuple):
    """A rule by which activations are offloaded or recomputed.

    `prefer` has the modes in order of preference, each by the first pass that it adds (OFFLOAD, or that of a
    recomputation). A reload is moved ahead of at most `ahead` passes before its backward, not counting copies.
    """

    prefer: tuple[PassKind, ...]
    ahead: int


def rules(problem: Problem) -> Iterator[Rule]:
    """Yield the rules to try: each mode first in turn, with reloads ahead of at most 1, 2 or 4 passes.

    Where nothing may be offloaded that number is 0, and without modes there are no rules.
    """
    modes = dict.fromkeys(kind for stage in problem.stages for kind in stage.saving_kinds if kind is not RELOAD)
    for first in modes:
        others = tuple(mode for mode in modes if mode != first)
        for ahead in (1, 2, 4) if OFFLOAD in modes else (0,):
            yield Rule((first, *others), ahead)


def with_decisions(problem: Problem, schedule: Schedule, rule: Rule) -> Schedule | None:
    """Return the order with copies and recomputations inserted so that it fits the memory; None if none is found.

    `schedule` keeps every activation. It is not changed.
    """
    orders = {device: list(schedule.passes_on(device)) for device in range(problem.devices)}
    # Those that move nothing come first, so that it is known what they leave to others.
    moving = {problem.placement.stage_device[stage] for _, stage in problem.network.elsewhere}
    for device in sorted(orders, key=lambda device: (device in moving, device)):
        order = _Device(problem, device, orders[device], rule, _left_elsewhere(problem, device, orders, rule)).order()
        if order is None:
            return None
        orders[device] = order
    return schedule_of([orders[device] for device in range(problem.devices)], schedule.name)


def _left_elsewhere(
    problem: Problem, device: DeviceId, orders: Mapping[DeviceId, Sequence[Pass]], rule: Rule
) -> MemorySteps | None:
    """Return how much memory a device's activations may take where they are offloaded to; None if unlimited.

    That is an equal share (rounded down), among its users, of the host's or other device's memory, less what that
    device itself needs.
    """
    network = problem.network
    to = {n for (_, s), changes in network.elsewhere.items() if problem.placement.stage_device[s] == device
          for n, _ in changes}  # fmt: skip
    shares = []
    for number in to:
        room, users = network.reservoirs[number]
        if room is not None:
            own = _Device(problem, number, orders[number], rule).most() if number < problem.devices else 0
            shares.append(max(0, room - own) // len({*users} - {number}))
    return min(shares, default=None)


@dataclass
class _Device:
    """One device: its passes in order, and the modes decided so far, by (stage, micro-batch); others are kept.

    `left_elsewhere` is the memory for offloaded activations, None if unlimited.
    """

    problem: Problem
    device: DeviceId
    passes: Sequence[Pass]
    rule: Rule
    left_elsewhere: MemorySteps | None = None
    modes: dict[tuple[StageId, MicrobatchId], Mode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._network = self.problem.network
        self._backward = {p[1:]: n for n, p in enumerate(self.passes) if p.kind in (B, BW)}
        self._room = self.problem.room[self.device]

    def order(self) -> list[Pass] | None:
        """Return the passes, in their order, with copies and recomputations, and record the modes decided in `modes`.

        None if the rule's decisions do not make them fit.
        """
        for p in self.passes:
            if p.kind is F and not self.problem.stages[p.stage].may_keep:
                self.modes[p[1:]] = self._choose(p[1:])
        for _ in range(len(self.passes) + 1):
            order = self._written()
            short = self._first_short(order)
            if short is None:
                return self._prefetched(order)
            if not self._save_before(order, short):
                return None
        return None

    def most(self) -> MemorySteps:
        """Return the highest memory level along the given passes, without copies and recomputations."""
        return max(self._levels(self.passes), default=0)

    def _choose(self, which: tuple[StageId, MicrobatchId]) -> Mode:
        able = self.problem.stages[which[0]].memory_until_backward
        return next((mode for mode in self.rule.prefer if mode in able), None)

    def _written(self) -> list[Pass]:
        """Return the order under the modes chosen so far, with reloads or recomputations right before the backward.

        Offloads are right after their F.
        """
        order: list[Pass] = []
        for p in self.passes:
            mode = self.modes.get(p[1:])
            if p.kind in (B, BW) and mode is not None:
                order.append(p._replace(kind=RELOAD if mode is OFFLOAD else mode))
            order.append(p)
            if p.kind is F and mode is OFFLOAD:
                order.append(p._replace(kind=OFFLOAD))
        return order

    def _prefetched(self, order: list[Pass]) -> list[Pass]:
        """Move each reload of the order ahead of up to `rule.ahead` passes while memory has room; return the order.

        `order` is changed in place. Copies do not count as passes.
        """
        for p in [p for p in order if p.kind is RELOAD]:
            levels = self._levels(order)
            at = order.index(p)
            place, passed = at, 0
            taken = self._network.change[RELOAD, p.stage].at_start
            while place and passed < self.rule.ahead:
                before = order[place - 1]
                if before == p._replace(kind=OFFLOAD) or (
                    self._room is not None and levels[place - 1] + taken > self._room
                ):
                    break
                place -= 1
                passed += before.kind not in (OFFLOAD, RELOAD)
            order.insert(place, order.pop(at))
        return order

    def _levels(self, order: Sequence[Pass]) -> list[MemorySteps]:
        """Return the memory in use at each place of an order once its pass has started and those before have ended."""
        level, found = 0, []
        for p in order:
            at_start, at_end = self._network.change[p[:2]]
            level += at_start
            found.append(level)
            level += at_end
            mode = self.modes.get(p[1:])
            if p.kind is F and mode is not None and mode is not OFFLOAD:
                level -= self._network.given_up.get((mode, p.stage), 0)
        return found

    def _first_short(self, order: Sequence[Pass]) -> int | None:
        """Return the place of the first pass at which the capacity is exceeded; None if there is none."""
        if self._room is None:
            return None
        return next((n for n, level in enumerate(self._levels(order)) if level > self._room), None)

    def _save_before(self, order: Sequence[Pass], short: int) -> bool:
        """Choose a mode for the activation in memory at place `short` whose backward is last; False if none helps.

        The mode is recorded in `modes`. `order` are the device's passes, in which the one at `short` lacks memory.
        """
        in_memory = dict.fromkeys(p[1:] for p in order[:short] if p.kind is F and p[1:] not in self.modes)
        for p in order[:short]:
            if p.kind in (B, BW):
                in_memory.pop(p[1:], None)
        now = order[short][1:]
        for which in sorted(in_memory, key=lambda one: -self._backward.get(one, 0)):
            if which == now:
                continue
            mode = self._mode_for(which, order[:short])
            if mode is not None:
                self.modes[which] = mode
                return True
        return False

    def _mode_for(self, which: tuple[StageId, MicrobatchId], before: Sequence[Pass]) -> Mode:
        """Return the rule's first mode that saves memory for activation `which` (stage, micro-batch), or None.

        Offloading counts only if there is room where the activation goes, after the passes `before`.
        """
        stage = self.problem.stages[which[0]]
        for mode in self.rule.prefer:
            keeps, moves = stage.memory_until_backward.get(mode, (stage.activation, 0))
            if keeps < stage.activation and (mode in RECOMPUTATIONS or self._fits_elsewhere(moves, before)):
                return mode
        return None

    def _fits_elsewhere(self, moved: MemorySteps, before: Sequence[Pass]) -> bool:
        if self.left_elsewhere is None:
            return True
        in_use = sum(change.total for p in before for _, change in self._network.elsewhere.get(p[:2], ()))
        return in_use + moved <= self.left_elsewhere
