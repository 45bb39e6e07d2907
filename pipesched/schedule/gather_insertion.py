"""Insertion of gatherings of parameters into an order of passes: as few and as early as memory admits.

A device keeps the parameters of its stages until a pass needs memory for those of another one. Then it drops those
whose next use is farthest in its order (Belady, IBM Systems Journal 5, 1966: no other rule loads fewer where all are of
equal size).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipesched.problem.passes import RESHARD, UNSHARD, Pass, Slot, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId
from pipesched.schedule.gathered import uses_parameters
from pipesched.schedule.schedule import Schedule, Wait


def with_gathers(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule with every gathering and drop of parameters, and the waits of gatherings on other streams.

    If the schedule has gatherings already, none is added; they get waits if the schedule has neither waits nor orders
    of tasks. If it has none, its own waits and orders of tasks are dropped. A problem without gathered parameters gets
    its schedule back unchanged. If the memory, or the allowed number of gatherings, does not suffice, the returned
    schedule exceeds the memory.
    """
    given = any(p.kind is UNSHARD for p in schedule.passes())
    complete = given and bool(schedule.task_orders or schedule.waits)
    if complete or all(stage.gather is None for stage in problem.stages):
        return schedule
    left = None
    if problem.parameters.most is not None:
        left = problem.parameters.most - sum(stage.gather is not None for stage in problem.stages)
    orders, waits = [], list[Wait]()
    for device in range(problem.devices):
        rule = _Device(problem, device, () if given else schedule.orders[device], left)
        orders.append(schedule.orders[device] if given else tuple(rule.order()))
        left = rule.left
        waits += rule.waits(orders[-1])
    return Schedule(tuple(orders), schedule.name, {}, waits)


class _Device:
    """The insertion of gatherings and drops into one device's order `slots`.

    `left` is the number of gatherings beyond the first of each stage that are still allowed on all devices, None for
    any number.
    """

    def __init__(self, problem: Problem, device: DeviceId, slots: Sequence[Slot], left: int | None) -> None:
        self._problem, self._slots, self.left = problem, slots, left
        self._room = problem.room[device]
        self._window = problem.parameters.window
        self._change = problem.network.change
        self._uses = [self._used_by(slot) for slot in slots]
        self._later: dict[int, list[int]] = {}  # the places of the uses still to come, the next one last
        for place in range(len(slots) - 1, -1, -1):
            for stage in self._uses[place]:
                self._later.setdefault(stage, []).append(place)
        self._count = Counter[int]()

    def _used_by(self, slot: Slot) -> list[StageId]:
        problem = self._problem
        users = [p for p in slot if uses_parameters(problem, p.kind, p.stage)]
        stages = dict.fromkeys(problem.parameters.holder(p.stage) for p in users)
        return [stage for stage in stages if problem.stages[stage].gather is not None]

    def order(self) -> list[Slot]:
        """Return the order with each gathering before the pass that needs it, and each drop after the last use.

        Gatherings are then moved earlier as far as memory admits. To be called once: it uses up this object.
        """
        found: list[Slot] = []
        after_last_use: dict[int, int] = {}  # of each stage that is there, the place after its last use
        level = 0
        for place, slot in enumerate(self._slots):
            takes = sum(max(0, self._change[p[:2]].at_start) for p in slot)
            for stage in self._uses[place]:
                gather = self._problem.stages[stage].gather
                assert gather is not None
                self._later[stage].pop()
                if stage not in after_last_use:
                    while self._full(level + takes + gather.memory, len(after_last_use) + 1):
                        dropped = self._farthest([one for one in after_last_use if one not in self._uses[place]])
                        if dropped is None:
                            break
                        level -= self._drop(dropped, after_last_use, found)
                    found.append((Pass(UNSHARD, stage, self._count[stage]),))
                    self._count[stage] += 1
                    level += gather.memory
            while self._full(level + takes, len(after_last_use)):
                dropped = self._farthest([one for one in after_last_use if one not in self._uses[place]])
                if dropped is None:
                    break
                level -= self._drop(dropped, after_last_use, found)
            found.append(slot)
            after_last_use |= dict.fromkeys(self._uses[place], len(found))
            level += sum(sum(self._change[p[:2]]) for p in slot)
        for stage in list(after_last_use):
            self._drop(stage, after_last_use, found)
        return self._earlier(found)

    def _full(self, level: MemorySteps, gathered: int) -> bool:
        """Return True if this memory level, or this number of gathered stages, exceeds the limit."""
        return (self._room is not None and level > self._room) or (self._window is not None and gathered > self._window)

    def _farthest(self, stages: list[StageId]) -> StageId | None:
        """Choose the stage to drop: one that is never used again, else that whose next use is farthest.

        None if none may be dropped. Gathering it again counts against `left`.
        """
        never = [stage for stage in stages if not self._later[stage]]
        if never:
            return never[0]
        able = [s for s in stages if (own := self._problem.stages[s].gather) and self._count[s] < own.most]
        if not able or self.left == 0:
            return None
        self.left = None if self.left is None else self.left - 1
        return max(able, key=lambda stage: self._later[stage][-1])

    def _drop(self, stage: StageId, after_last_use: dict[StageId, int], found: list[Slot]) -> MemorySteps:
        """Insert the drop of a stage's parameters after their last use; returns the memory that it frees.

        The drop becomes a slot of `found`, and `after_last_use` (places in `found`, by stage) is updated.
        """
        place = after_last_use.pop(stage)
        found.insert(place, (Pass(RESHARD, stage, self._count[stage] - 1),))
        for other, at in after_last_use.items():
            after_last_use[other] = at + (at >= place)
        gather = self._problem.stages[stage].gather
        return gather.memory if gather is not None else 0

    def _earlier(self, order: list[Slot]) -> list[Slot]:
        """Return the order with each gathering moved before as many passes as memory admits.

        Gatherings stay in order and after the previous drop.
        """
        found: list[Slot] = []
        levels: list[tuple[int, int]] = []  # the most memory in use at each slot, and after it; the stages gathered
        after, gathered = 0, 0
        for slot in order:
            place, kind = len(found), slot[0].kind
            if kind is UNSHARD:
                gather = self._problem.stages[slot[0].stage].gather
                memory = gather.memory if gather is not None else 0
                while place and found[place - 1][0].kind is not UNSHARD and not self._full(
                    levels[place - 1][0] + memory, levels[place - 1][1] + 1
                ) and found[place - 1][0][:2] != (RESHARD, slot[0].stage):  # fmt: skip
                    place -= 1
                levels[place:] = [(level + memory, count + 1) for level, count in levels[place:]]
                before = levels[place - 1] if place else (0, 0)
                levels.insert(place, (before[0] + memory, before[1] + 1))
                found.insert(place, slot)
                after, gathered = after + memory, gathered + 1
                continue
            takes = sum(max(0, self._change[p[:2]].at_start) for p in slot)
            levels.append((after + takes, gathered))
            gathered -= kind is RESHARD
            after += sum(sum(self._change[p[:2]]) for p in slot)
            found.append(slot)
        return found

    def waits(self, order: Sequence[Slot]) -> list[Wait]:
        """Return the waits of gatherings on another stream for the passes before them, if memory is limited.

        Empty without a memory limit.
        """
        if self._room is None:
            return []
        found, last, first = [], None, self._problem.streams[0]
        for slot in order:
            for p in slot:
                tasks = self._problem.tasks_of(p.kind, p.stage)
                if p.kind is UNSHARD and tasks[0].stream != first and last is not None:
                    found.append(Wait(last, Task(p)))
                on_first = [part for part, task in enumerate(tasks) if task.stream == first]
                last = Task(p, on_first[-1]) if on_first else last
        return found
