"""Memory levels: the peaks that a schedule can have on its fullest device, and the capacities that allow each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from math import gcd

from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId
from pipesched.results.analysis.memory_scale import MemoryScale
from solver.memory_weights import weights_of

# A device with more levels than this has equally spaced levels instead: multiples of the greatest common divisor of its
# amounts.
_MOST_LEVELS = 50_000


class MemoryLevels:
    """Memory levels that a schedule of a problem can have, as fractions in the units of `scale`.

    A level is an amount of memory per device or, where capacities differ, a share of each device's capacity. Memory
    that stays in use whatever runs (`static`) is not part of it. `shares_of` are, by device and in steps of memory, the
    capacities that levels are shares of, if they are not the problem's own; levels are then always shares.
    """

    def __init__(self, problem: Problem, shares_of: Sequence[Fraction] | None = None) -> None:
        self.problem = problem
        own = [Fraction(weight) for weight in weights_of(problem)]
        by_share = shares_of is not None or len(set(own)) > 1
        weights = (shares_of or own) if by_share else [1 / problem.resolution] * problem.devices
        self.scale = MemoryScale(problem, tuple(weights), by_share)
        self._chains = without_scale(problem)
        self._devices = [_Device(self._chains, device) for device in range(problem.devices)]

    def least(self) -> Fraction:
        """Return a level below which no schedule exists: a device must fit its activations of one micro-batch.

        A level is an amount in the file's unit or a share of each device's capacity, as `scale` says.
        """
        return max(_one_microbatch(self._chains, d) / w for d, w in enumerate(self.scale.weights))

    def most(self) -> Fraction:
        """Return a level that no schedule exceeds, with all activations of all micro-batches in memory.

        A level is an amount in the file's unit or a share of each device's capacity, as `scale` says.
        """
        return max(device.most / w for device, w in zip(self._devices, self.scale.weights, strict=True))

    def capacities(self, level: Fraction) -> tuple[MemorySteps, ...]:
        """Return by device the most memory that it can use at a level, in steps, within its capacity.

        It is an amount that some schedule can have there, so mostly less than the level itself.
        """
        return tuple(
            device.at_most(_least_of(int(level * weight), own))
            for device, weight, own in zip(self._devices, self.scale.weights, self.problem.room, strict=True)
        )

    def under(self, level: Fraction) -> Problem:
        """Return the problem with the capacities of this level, none of them above the problem's own."""
        return self.problem.with_room(self.capacities(level))

    def snapped(self, level: Fraction) -> Fraction:
        """Return the highest level that a schedule can have and that does not exceed this one.

        A level is an amount in the file's unit or a share of each device's capacity, as `scale` says.
        """
        return max(c / w for c, w in zip(self.capacities(level), self.scale.weights, strict=True))

    def above(self, level: Fraction) -> Fraction | None:
        """Return the lowest level that a schedule can have above this one; None if capacities allow none.

        A level is an amount in the file's unit or a share of each device's capacity, as `scale` says.
        """
        found = []
        for device, cap in enumerate(self.capacities(level)):
            more, own = self._devices[device].above(cap), self.problem.room[device]
            if more is not None and (own is None or more <= own):
                found.append(more / self.scale.weights[device])
        return min(found, default=None)


class _Device:
    """Memory levels of one device in steps of memory: sums of whole activations, and of the parts kept until W.

    Activations that other devices move there add to them. `most` is the amount that no schedule exceeds there.
    """

    def __init__(self, problem: Problem, device: DeviceId) -> None:
        network = problem.network
        stages = [s for s in problem.placement.stages_of[device] if problem.microbatches_of[s]]
        self._kinds = [(network.memory_in_flight[s], network.memory_until_weight[s]) for s in stages]
        counts = [len(problem.microbatches_of[s]) for s in stages]
        gathered = {_holder(problem, s): _gathered(problem, s) for s in stages}
        self.most = sum(max(kind) * count for kind, count in zip(self._kinds, counts, strict=True))
        self.most += sum(gathered.values())
        moved = {s: change.total for (_, s), change in network.changes_of_others(device).items() if change.total > 0}
        self.most += sum(amount * len(problem.microbatches_of[s]) for s, amount in moved.items())
        stages_and_counts = zip((problem.stages[s] for s in stages), counts, strict=True)
        # The passes of a micro-batch overlap where the first task of one, a gathering, needs nothing of the other.
        self.most += sum((sum(own.workspace) + sum(own.until_end)) * count for own, count in stages_and_counts)
        # Memory that is moved, recomputed, kept for later pieces, gathered, or in use only while a pass runs gives more
        # levels than can be listed.
        parts = [part for s in stages for part in _parts(problem, s)] + [*moved.values()]
        self._step = gcd(*(amount for kind in self._kinds for amount in kind), *parts) or 1
        self._levels = None if any(parts) else self._enumerated(counts)

    def _enumerated(self, counts: list[int]) -> list[MemorySteps] | None:
        """Return all memory levels that some schedule can have on the device, in steps of memory, in ascending order.

        They are sums of whole activations and of the parts kept until W, of at most `counts[n]` micro-batches on the
        device's n-th stage. None if there are too many to list.
        """
        levels = {0}
        for (whole, for_weight), count in zip(self._kinds, counts, strict=True):
            if (count + 1) * (count + 2) // 2 * len(levels) > 100 * _MOST_LEVELS:
                return None
            one = {n * whole + k * for_weight for n in range(count + 1) for k in range(count + 1 - n)}
            if len(one) * len(levels) > 100 * _MOST_LEVELS:
                return None
            levels = {a + b for a in levels for b in one}
            if len(levels) > _MOST_LEVELS:
                return None
        return sorted(levels)

    def at_most(self, amount: MemorySteps) -> MemorySteps:
        """Return the highest memory level, in steps, up to `amount` that some schedule can have on the device."""
        if self._levels is None:
            return min(amount // self._step * self._step, self.most)
        return self._levels[max(0, bisect_right(self._levels, amount) - 1)]

    def above(self, amount: MemorySteps) -> MemorySteps | None:
        """Return the lowest memory level above `amount` that some schedule can have on the device, in steps of memory.

        None if there is none.
        """
        if self._levels is None:
            more = (amount // self._step + 1) * self._step
            return more if more <= self.most else None
        place = bisect_right(self._levels, amount)
        return self._levels[place] if place < len(self._levels) else None


def _one_microbatch(problem: Problem, device: DeviceId) -> MemorySteps:
    """Return the least memory, in steps of memory, with which a device can run its forwards of one micro-batch."""
    where, network, found = problem.placement, problem.network, 0
    for chain in where.chains:
        here = [s for s in chain if where.stage_device[s] == device and problem.microbatches_of[s]]
        in_addition = [_gathered(problem, s) + problem.stages[s].workspace.forward for s in here]
        alone = [network.memory_in_flight[s] + more for s, more in zip(here, in_addition, strict=True)]
        # With activation modes the activations of the stages before may have been moved, or are recomputed later.
        together = [] if network.has_activation_modes else [sum(network.memory_in_flight[s] for s in here[:-1])]
        found = max(found, *alone, alone[-1] + sum(together)) if here else found
    return found


def _holder(problem: Problem, stage: StageId) -> StageId:
    return problem.parameters.holder(stage)


def _gathered(problem: Problem, stage: StageId) -> MemorySteps:
    """Return the memory of a stage's parameters while they are gathered; 0 if they are not gathered."""
    own = problem.stages[_holder(problem, stage)].gather
    return 0 if own is None else own.memory


def _parts(problem: Problem, stage: StageId) -> list[MemorySteps]:
    """Return the amounts of a stage by which memory may change other than whole activations and parts kept until W."""
    own = problem.stages[stage]
    moved = [] if own.offload is None else [own.offload.amount]
    in_addition = [own.kv_cache.taken, _gathered(problem, stage), *own.workspace, *own.until_end]
    return [*in_addition, *moved, *(own.activation - mode.keeps for mode in own.recompute)]


def _least_of(amount: MemorySteps, own: MemorySteps | None) -> MemorySteps:
    return amount if own is None else min(amount, own)
