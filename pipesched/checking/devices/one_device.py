"""Quantities of one device that arguments use: stages, memory, least work, and forced idle times."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import floor

from pipesched.checking.devices.least_times import LeastTimes, least_backward, least_times
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks

# Value, memory that one takes, how many there are.
Item = tuple[int, MemorySteps, int]


class OneDevice:
    """Quantities of one device, for arguments about its work and memory.

    `RefusedEvidenceError` if there is no such device or no micro-batch passes it.

    `chains` are the device's stages chain by chain, in walking order, and `stages` those of all chains; both without
    stages and chains that no micro-batch passes. `times` are the least times of all stages of the problem by number.
    `count[s]` is the number of micro-batches of stage s, `room` the memory for activations in steps, None if unlimited.
    `blocks` is True if any stage of the problem may run in a block.
    """

    def __init__(self, problem: Problem, device: DeviceId, times: Sequence[LeastTimes] | None = None) -> None:
        if not 0 <= device < problem.devices:
            raise RefusedEvidenceError(f"there is no device {device}")
        self.problem, self.device = problem, device
        self.times = least_times(problem) if times is None else times
        self.count = [len(each) for each in problem.microbatches_of]
        device_of = problem.placement.stage_device
        here = [[s for s in chain if device_of[s] == device and self.count[s]] for chain in problem.placement.chains]
        self.chains = [stages for stages in here if stages]
        self.stages = [stage for chain in self.chains for stage in chain]
        if not self.stages:
            raise RefusedEvidenceError(f"no micro-batch passes device {device}")
        self.room = problem.room[device]
        self.blocks = any(stage.in_blocks for stage in problem.stages)

    @property
    def firsts(self) -> list[list[StageId]]:
        """Return, for each chain whose micro-batch may be the first on the device, the chain's stages on the device.

        Of the chains of one queue it is the chain with the queue's first micro-batch.
        """
        return self._ends_of_queues(False)

    @property
    def lasts(self) -> list[list[StageId]]:
        """Return, for each chain whose micro-batch may be the last on the device, the chain's stages on the device.

        Of the chains of one queue it is the chain with the queue's last micro-batch.
        """
        return self._ends_of_queues(True)

    def _ends_of_queues(self, last: bool) -> list[list[StageId]]:
        """Return for each queue the device's stages on the chain with the queue's first, or last, micro-batch.

        A queue is a set of stages whose passes keep the order of micro-batches.
        """
        queue_of, walked = self.problem.queue_of, self.problem.microbatches_of
        ordered = sorted(self.chains, key=lambda chain: walked[chain[0]][0], reverse=not last)
        # What is written later stays.
        return [*{queue_of[chain[0]]: chain for chain in ordered}.values()]

    def blocks_of_forward(self, s: StageId) -> list[Ticks]:
        """Return the ticks of each block that the device may run of a forward of stage `s` and any full backward.

        Empty if there is none.
        """
        stages = self.problem.stages
        return [ticks for b in self.stages if (ticks := stages[s].block_with(stages[b])) is not None]

    def blocks_of_backward(self, s: StageId) -> list[Ticks]:
        """Return the ticks of each block that the device may run of a full backward of stage `s` and any forward.

        Empty if there is none.
        """
        stages = self.problem.stages
        return [ticks for f in self.stages if (ticks := stages[f].block_with(stages[s])) is not None]

    @property
    def work(self) -> Ticks:
        """The least ticks of all passes of the device.

        Each alone in its faster mode, less the most that blocks may save.
        """
        stages = self.problem.stages
        alone = sum((stages[s].forward + least_backward(stages[s])) * self.count[s] for s in self.stages)
        saved = 0
        for f, b in product(self.stages, self.stages):
            block = stages[f].block_with(stages[b])
            if block is not None:
                saved = max(saved, stages[f].forward + stages[b].fused - block)
        return max(0, alone - saved * sum(self.count[s] for s in self.stages))

    @property
    def first_start(self) -> Ticks:
        """The earliest start, in ticks from time 0, of any pass of the device."""
        return min(self.times[chain[0]].begins for chain in self.firsts)

    @property
    def backward_before_last_forward(self) -> bool:
        """True if memory cannot take all activations, so that some backward starts before the last forward."""
        everything = sum(self.problem.stages[s].activation * self.count[s] for s in self.stages)
        return self.room is not None and everything > self.room

    def until_first_backward(self) -> Ticks:
        """Return the least ticks from the device's first start to the start of its first backward.

        That backward is on the last stage that some chain has on the device, so its micro-batch has run all stages of
        the chain there.
        """
        return min(self.times[chain[-1]].gradient_begins - self.times[chain[0]].begins for chain in self.firsts)

    def idle_at_first(self, some_forward_later: bool) -> Ticks:
        """Return the least idle ticks before the first backward.

        Only forwards run then, and their activations stay in memory. `some_forward_later` is True if at least one
        forward runs after the first backward.
        """
        stages = self.problem.stages
        forwards = [(stages[s].forward, stages[s].activation, self.count[s]) for s in self.stages]
        runs = most_in(self.room, forwards)
        if some_forward_later:
            all_of_them = sum(ticks * count for ticks, _, count in forwards)
            runs = min(runs, all_of_them - min(ticks for ticks, _, _ in forwards))
        return max(0, self.until_first_backward() - runs)

    def idle_at_last(self) -> Ticks:
        """Return the least idle ticks between the last forward and that micro-batch's last backward on the device."""
        stages, idle = self.problem.stages, []
        for last in self.lasts:
            one, other = self.times[last[-1]], self.times[last[0]]
            wait = other.gradient_begins - one.begins - one.forward
            backwards = sum(least_backward(stages[s]) for s in last[1:])
            idle.append(max(0, wait - backwards - self.left_of_others(last)))
        return min(idle)

    def idle_between(self, round_trips_more: int) -> Ticks:
        """Return the least idle ticks in round trips between the first and the last, and in `round_trips_more` others.

        From the end of a micro-batch's last forward on the device to its first backward there, all its activations are
        in memory; K micro-batches fit at once. Passes of one kind and stage may be assumed to run in the order of
        micro-batches, so the round trips of every K-th micro-batch and of the last one do not overlap. During each of
        them forwards of later micro-batches can run, whose activations stay, and the remaining work of earlier ones
        that are in memory then; the device is idle for the remainder. 0 for a device that several chains visit, and
        where memory is unlimited, or has room for all micro-batches or for none.
        """
        if self.room is None or len(self.chains) != 1:
            return 0
        (chain,) = self.chains
        stages, last, count = self.problem.stages, self.times[chain[-1]], self.count[chain[0]]
        activations = sum(stages[s].activation for s in chain)
        admitted = self.room // activations if activations else count
        if not 0 < admitted < count:
            return 0
        most = admitted - 1 if len(chain) == 1 else count - 1
        runs = most_in(self.room - activations, [(stages[s].forward, stages[s].activation, most) for s in chain])
        idle = max(0, last.gradient_begins - last.begins - last.forward - runs - self.left_of_others(chain))
        return ((count - 1) // admitted - 1 + round_trips_more) * idle

    def rounds(self, number: StageId) -> tuple[int, Ticks]:
        """Return how many micro-batches memory admits to a stage at once, and the least ticks until it admits one more.

        `RefusedEvidenceError` if memory does not limit them, or has no room for one.
        """
        stage, times = self.problem.stages[number], self.times[number]
        if self.room is None or stage.activation <= 0 or self.room < stage.activation:
            raise RefusedEvidenceError(f"memory does not limit the micro-batches on stage {number}")
        admitted = self.room // stage.activation
        room_after = times.gradient
        if stage.weight is None or stage.freed <= 0:
            room_after = times.backward
        elif admitted * stage.activation + stage.activation - stage.freed > self.room:
            # The rest of one activation is still in the way: its weight pass must run too, or a second gradient pass.
            room_after = min(times.backward, 2 * times.gradient)
        return admitted, times.gradient_begins - times.begins + room_after

    def left_of_others(self, last: list[StageId]) -> Ticks:
        """Return the most ticks of work of other micro-batches that are left when the device's last forward ends.

        `last` are the stages on the device of the chain that this forward is on; all activations of its micro-batch
        there are in memory. Of another micro-batch, a stage has the whole activation in memory if its backward is still
        to run, or the part that a backward leaves if only the weight pass is.
        """
        stages = self.problem.stages
        room = None if self.room is None else self.room - sum(stages[s].activation for s in last)
        items, everything = list[Item](), 0
        for s in self.stages:
            stage, count = stages[s], self.count[s] - (s in last)
            everything += least_backward(stage) * count
            items.append((least_backward(stage), stage.activation, count))
            if stage.weight is not None:
                items.append((stage.weight, stage.activation - stage.freed, count))
        return min(everything, most_in(room, items))

    def weight_passes(self) -> list[tuple[Ticks, MemorySteps, int]]:
        """Return (ticks of W, memory until its end, number of micro-batches) of each stage of the device with a W."""
        stages = self.problem.stages
        passes = [(stages[s].weight, stages[s].activation - stages[s].freed, self.count[s]) for s in self.stages]
        return [(ticks, memory, count) for ticks, memory, count in passes if ticks is not None]


def most_in(room: MemorySteps | None, items: list[Item]) -> int:
    """Return an upper bound on the total value of items that fit into the room; items are (value, size, count).

    For two sizes all choices are tried; for more, items are taken by value for size, and a fraction of the last one
    counts, rounded down in the end. Items of size 0 or less count in full and take nothing. None as room: all items
    fit; a negative room counts as 0.
    """
    together: dict[tuple[int, int], int] = {}
    for value, size, count in items:
        together[value, size] = together.get((value, size), 0) + count
    if room is None:
        return sum(value * count for (value, _), count in together.items())
    free = sum(value * count for (value, size), count in together.items() if size <= 0)
    sized = sorted((Fraction(value, size), value, size, n) for (value, size), n in together.items() if size > 0)
    room = max(0, room)
    if len(sized) <= 2:
        (_, value, size, count), (_, value2, size2, count2) = [*sized, (0, 0, 1, 0), (0, 0, 1, 0)][:2]
        choices = ((n, (room - n * size) // size2) for n in range(min(count, room // size) + 1))
        return free + max(n * value + min(count2, fitting) * value2 for n, fitting in choices)
    total, left = Fraction(free), Fraction(room)
    for _, value, size, count in reversed(sized):
        taken = min(Fraction(count), left / size)
        total, left = total + taken * value, left - taken * size
    return floor(total)
