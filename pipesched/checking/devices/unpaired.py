"""Argument: the device takes at least this long for every number of passes outside of blocks and of split backwards.

Where a forward and a full backward run as one block, as many forwards as backwards are outside of blocks: `alone` of
them. Of those backwards, `split` run as B and W. For each pair of these numbers the arguments of work, of the last
gradient and of the last forward hold, and the strongest counts; since the numbers are unknown, the least over all pairs
holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from pipesched.checking.devices.head_and_tail import gates_of, return_path
from pipesched.checking.devices.one_device import OneDevice, most_in
from pipesched.checking.finding import NotCoveredError
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.results.evidence import OnDevice

# Rows are numbers outside of blocks, columns numbers of splits.
Table = NDArray[np.int64]

# Beyond so many pairs of numbers the best number of splits stands for all; sums must fit into 64 bits.
_MOST_PAIRS = 150_000
LARGEST = 2**58


def unpaired_passes(problem: Problem, evidence: OnDevice) -> Fraction:
    """Return the least bound, in ticks, over all pairs (number of passes outside of blocks, number of split backwards).

    `RefusedEvidenceError` if there is no such device or no micro-batch passes it; `NotCoveredError` for blocks on some
    of the device's stages alone, or for sums of times that are too long.
    """
    numbers, values = values_by_numbers(OneDevice(problem, evidence.device))
    return Fraction(int(values[numbers.possible].min()))


def values_by_numbers(here: OneDevice) -> tuple[ModeNumbers, Table]:
    """Return the possible numbers of passes outside of blocks and of split backwards, and a bound for each pair.

    The bounds, in ticks on the objective, are a table with a row for each number of passes outside of blocks and a
    column for each number of split backwards; only those where `possible` is True count. `NotCoveredError` for blocks
    on some of the device's stages alone, or for sums of times that are too long.
    """
    numbers = ModeNumbers(here)
    # Where no backward in full memory makes room by itself, memory is full at the first backward, or has room for one.
    frees = [here.problem.stages[s].weight is None or here.problem.stages[s].freed > 0 for s in here.stages]
    cases = (False,) if here.room is None or any(frees) else (True, False)
    least_room = 0 if len(cases) == 1 else min(here.problem.stages[s].activation for s in here.stages)
    owners = [None] if here.problem.objective.from_zero else _owners(here)
    values = [
        np.maximum.reduce(
            [one for owner in owners for one in numbers.arguments(owner, full, 0 if full else least_room)]
        )
        for full in cases
    ]
    return numbers, np.minimum.reduce(values)


def _owners(here: OneDevice) -> list[DeviceId | None]:
    """Return the devices whose span the device's bound also bounds.

    They are itself, and those that every chain passes before it. Never None, which stands for the makespan elsewhere.
    """
    device_of, found = here.problem.placement.stage_device, set[int]()
    for number, stages in enumerate(here.chains):
        chain = next(chain for chain in here.problem.placement.chains if stages[0] in chain)
        passed = {device_of[s] for s in chain[: chain.index(stages[0]) + 1]}
        found = passed if number == 0 else found & passed
    return list(found)


class ModeNumbers:
    """Quantities of a device for each pair of numbers: of passes outside of blocks, and of split backwards.

    `alone` has the numbers of passes outside of blocks that are considered, `split` those of split backwards. Tables
    have a row for each entry of `alone` and a column for each of `split`: `possible` is True for the pairs that can
    occur, `work` is the least ticks of all passes. If there are too many pairs, the only column stands for the best
    number of split backwards. `mixed` is True for the rows in which some backward runs before the last forward. `total`
    is the number of forwards, `stages` has the device's stages by number, and `splits` is True if all of them have a W.
    `NotCoveredError` for blocks on some of the device's stages alone, or for sums of times that are too long.
    """

    def __init__(self, here: OneDevice) -> None:
        self.here, stages = here, {s: here.problem.stages[s] for s in here.stages}
        self.stages, self.total = stages, sum(here.count[s] for s in here.stages)
        self.splits = all(stage.weight is not None for stage in stages.values())
        given = [stage.in_blocks for stage in stages.values()]
        if any(given) != all(given):
            raise NotCoveredError("blocks on some stages of a device alone")
        if sum((s.forward + s.fused + s.backward + (s.weight or 0)) for s in stages.values()) * self.total > LARGEST:
            raise NotCoveredError("sums of times that are too long to be tried for every number of splits")
        smallest = min(stage.activation for stage in stages.values())
        blocks = all(given) and (here.room is None or 2 * smallest <= here.room)
        self.alone = np.arange(self.total + 1) if blocks else np.array([self.total])
        self.split = np.arange(self.total + 1) if self.splits else np.array([0])
        many = len(self.alone) * len(self.split) > _MOST_PAIRS
        more = self.sums({s: one.backward + (one.weight or 0) - one.fused for s, one in stages.items()}, most=False)
        if not self.splits:
            more = np.zeros(self.total + 1, np.int64)
        if many:
            more, self.split = np.full(self.total + 1, more.min()), np.array([self.total])
        self.possible = (self.split[None, :] <= self.alone[:, None]) | many
        paired = self.total - self.alone
        base = sum((one.forward + one.fused) * here.count[s] for s, one in stages.items())
        saved = self._saved()[paired] if blocks else np.zeros(1, np.int64)
        self.work: Table = (base - saved)[:, None] + more[self.split][None, :]
        self.mixed = (self.alone < self.total) | here.backward_before_last_forward

    def _saved(self) -> Table:
        """Return an array whose entry n is an upper bound on the ticks that n blocks save together.

        A block saves at most what its forward can save in any block; and its duration is no less than the least with
        its forward, so that it saves at most the forward less this, and its backward.
        """
        by_least = {f: one.forward - min(self.here.blocks_of_forward(f)) for f, one in self.stages.items()}
        by_pair = {
            f: max(
                one.forward + other.fused - ticks
                for other in self.stages.values()
                if (ticks := one.block_with(other)) is not None
            )
            for f, one in self.stages.items()
        }
        return _lesser(self.sums(by_least) + self.sums(self._fused), self.sums(by_pair))

    @property
    def _fused(self) -> dict[StageId, Ticks]:
        """Return by stage of the device the ticks of a fused backward."""
        return {s: one.fused for s, one in self.stages.items()}

    def sums(self, value: dict[StageId, int], most: bool = True) -> Table:
        """Return an array whose entry n is the largest (or least) sum of `value` over n passes of the device.

        `value` is given by stage. The passes are of different micro-batches or stages. `most`: the largest sum, else
        the least.
        """
        each = sorted((value[s] for s in self.stages for _ in range(self.here.count[s])), reverse=most)
        return np.array([0, *accumulate(each)], np.int64)

    def arguments(self, owner: DeviceId | None, full: bool, kept_free: MemorySteps) -> Iterator[Table]:
        """Yield a table of bounds in ticks for each argument.

        They bound the span of device `owner`, or the makespan if it is None. `full` says that memory was full at the
        first backward; `kept_free` is memory that stayed empty until then. Raises `RefusedEvidenceError` if a chain of
        the device does not pass the owner. A table has a row for each number of passes outside of blocks and a column
        for each number of split backwards.
        """
        here, times = self.here, self.here.times
        gates = gates_of(here.problem, owner, here)
        heads = [times[c[0]].begins - times[g].begins for c, g in zip(here.chains, gates, strict=True)]
        tails = [return_path(here, c[0], g) for c, g in zip(here.chains, gates, strict=True)]
        first = min(
            head + times[c[-1]].gradient_begins - times[c[0]].begins for head, c in zip(heads, here.chains, strict=True)
        )
        # Only forwards outside of blocks run before the first backward; what they do not fill is lost.
        begin = np.maximum(min(heads), first - self._forwards_at_first(kept_free))
        ends_here = owner in (None, here.device)
        if ends_here:
            yield begin[:, None] + self.work
        yield begin[:, None] + self.work - self._weights_at_last()[None, :] + min(tails)
        begin_mixed = np.where(self.mixed, begin, min(heads))[:, None]
        last = []
        for chain, tail in zip(here.chains, tails, strict=True):
            gradient, own = times[chain[0]], times[chain[-1]]
            back = gradient.gradient_begins - own.begins - own.forward
            until = max(back + gradient.gradient + tail, back + gradient.backward if ends_here else 0)
            last.append(begin_mixed + self.work - self._left_at_last_forward(chain, full) + until)
        yield np.minimum.reduce(last)  # any chain's forward may be the last

    def _forwards_at_first(self, kept_free: MemorySteps) -> Table:
        """Return by number of passes outside of blocks the most ticks of such forwards before the first backward.

        Memory admits them, without `kept_free` of it.
        """
        room = None if self.here.room is None else self.here.room - kept_free
        ticks = {s: one.forward for s, one in self.stages.items()}
        fit = most_in(room, [(ticks[s], one.activation, self.here.count[s]) for s, one in self.stages.items()])
        if self.here.backward_before_last_forward:
            fit = min(fit, sum(ticks[s] * self.here.count[s] for s in ticks) - min(ticks.values()))
        return _lesser(self.sums(ticks)[self.alone], fit)

    def _weights_at_last(self) -> Table:
        """Return the most ticks of weight passes after the last gradient, by number of split backwards.

        Memory must admit them.
        """
        if not self.splits:
            return np.zeros(1, np.int64)
        most = self.sums({s: one.weight or 0 for s, one in self.stages.items()})[self.split]
        return _lesser(most, most_in(self.here.room, self.here.weight_passes()))

    def _left_at_last_forward(self, last: list[StageId], full: bool) -> Table:
        """Return a table of the most ticks of backwards left when a forward of chain `last` was the device's last.

        Those backwards are outside of blocks, and their activations are in memory in addition to that micro-batch's
        own. If memory was full at the first backward, that one has run, unless all forwards had. A split backward may
        take longer than a fused one.
        """
        here, stages = self.here, self.stages
        outside = np.maximum(self.alone - (self.mixed if full else 0), 0)
        by_number = self.sums(self._fused)[outside][:, None]
        of_last = sum(stages[s].fused for s in last)
        room = None if here.room is None else here.room - sum(stages[s].activation for s in last)
        others = [(one.fused, one.activation, here.count[s] - (s in last)) for s, one in stages.items()]
        if not self.splits:
            return _lesser(by_number, of_last + most_in(room, others))
        weights = self.sums({s: one.weight or 0 for s, one in stages.items()})[self.split]
        by_memory = of_last + _lesser(most_in(room, others) + weights, most_in(room, [*others, *here.weight_passes()]))
        more = self.sums({s: max(0, one.backward + (one.weight or 0) - one.fused) for s, one in stages.items()})
        at_once, least = self.total, min(one.activation - max(0, one.freed) for one in stages.values())
        if here.room is not None and least:
            at_once = min(self.total, here.room // least)
        return _lesser(by_number, by_memory[None, :]) + more[_lesser(self.split, at_once)][None, :]


def _lesser(one: Table, other: Table | int) -> Table:
    found: Table = np.minimum(one, other)
    return found
