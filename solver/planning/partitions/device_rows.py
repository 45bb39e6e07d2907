"""Load and memory tests of one device's stages against a threshold to be refuted, for many partitions at once.

The arguments are those of the rows that bound every partition (formulations/partition), and one more: where backwards
are split, memory that B does not free is occupied until the end of W.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formulations.partition.stage_terms import ChainPosition
from pipesched.int64_arrays import IntArray
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.quantities import DeviceId, Ticks
from solver.planning.partitions.stage_tables import StageTables

# A True or False for each partial partition.
Flags = NDArray[np.bool_]


class PartitionRows(NamedTuple):
    """Partial partitions as columns of arrays: one entry of each array for each partial partition.

    `cuts[n]` is the position of cut n, before stage n: an index in `StageTables.places`. `label` is the label of the
    dynamic programming (extra time in ticks), and `work` the work of the devices processed so far, in the unit of times
    of `StageTables`. `load` is the load of the current device's stages in ticks per micro-batch. `stages[k]` has eight
    rows for stage k: ticks of F, of the gradient and of the least backward, memory until the gradient and until the
    last pass, memory of the layers, ticks from a forward to its gradient's arrival, and ticks of F and gradient on the
    device. `extra_time` is by how many ticks these stages are slower than without recomputation on the fastest device.
    """

    cuts: dict[int, IntArray]
    label: IntArray
    work: IntArray
    load: IntArray
    stages: dict[ChainPosition, IntArray]
    extra_time: IntArray

    @property
    def rows(self) -> int:
        """Number of partial partitions."""
        return len(self.label)

    def take(self, which: IntArray | Flags) -> PartitionRows:
        """Return the entries selected by `which`, an array of indices or a boolean mask."""
        cuts = {cut: places[which] for cut, places in self.cuts.items()}
        stages = {k: numbers[:, which] for k, numbers in self.stages.items()}
        return PartitionRows(
            cuts, self.label[which], self.work[which], self.load[which], stages, self.extra_time[which]
        )


class DeviceRows:
    """Tests that a threshold leaves the stages of one device enough time and memory, for a placement with one chain.

    The placement is `choice`, the costs of its stages are in `tables`.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, tables: StageTables) -> None:
        self._plan, self._tables, self._m = plan, tables, plan.microbatches
        self._span, self._splits = plan.objective.by_device, plan.model.splittable
        placement = choice.on(plan.cluster.devices)
        where = [placement.stage_device[stage] for stage in placement.chains[0]]
        self._fastest = min(tables.slower[device] for device in where)
        lags = plan.least_lags(choice)
        self._there, self._back = (np.array([0, *(lag[n] for lag in lags)]).cumsum() for n in (0, 1))

    def most_work(self, devices: list[DeviceId], value: Ticks) -> int:
        """Return how much work per micro-batch `devices` can do together if none takes more than `value` ticks in all.

        The work is in the unit of times of the tables, rounded down.
        """
        return int(sum((Fraction(value, self._m * self._tables.slower[device]) for device in devices), Fraction(0)))

    def with_stage(self, rows: PartitionRows, device: DeviceId, k: ChainPosition, value: Ticks) -> PartitionRows:
        """Return the partial partitions extended by stage k, once for each recomputation mode that the load allows.

        Stages of the device are added from the last to the first: the path recorded for stage k includes the extra time
        of those added before, and the load of `rows` is that of the device. The rows must have cuts k and k + 1.
        `value` is the threshold in ticks, which the load may reach.
        """
        tables, slower = self._tables, self._tables.slower[device]
        a, b = rows.cuts[k], rows.cuts[k + 1]
        forward = tables.forward[b] - tables.forward[a] + tables.overhead[0]
        gradient = tables.gradient[b] - tables.gradient[a] + tables.overhead[1]
        backward = tables.backward[b] - tables.backward[a] + tables.overhead[1]
        load = rows.load + slower * (forward + backward)
        spare = (value - sum(map(int, self._extra_times(device))) - self._m * load) // (self._m * slower)
        times = tables.modes[0, a, b]
        which, mode = np.nonzero((times >= 0) & (times <= spare[:, None]))
        again, kept, late = tables.modes[:, a[which], b[which], mode]
        found = rows.take(which)
        extra_time = (slower - self._fastest) * (forward + gradient)[which] + slower * again
        own = np.stack(
            [
                slower * forward[which],
                slower * (gradient[which] + again),
                slower * (backward[which] + again),
                kept,
                late,
                tables.memory[b[which]] - tables.memory[a[which]],
                # The path from this stage to the last one and back, without the extra time of stages of processed
                # devices.
                self._around(k, b[which]) + found.extra_time,
                # What F and the gradient add to the device's work.
                slower * (forward + tables.busy[b] - tables.busy[a] + tables.overhead[1])[which] + slower * again,
            ]
        )
        return found._replace(
            load=load[which] + slower * again,
            stages=found.stages | {k: own},
            extra_time=found.extra_time + extra_time,
            work=found.work + (forward + backward)[which],
        )

    def _extra_times(self, device: DeviceId) -> tuple[Ticks, Ticks, Ticks]:
        before, between, after = self._tables.extra.by_position
        return before[device], between[device], after[device]

    def _around(self, k: ChainPosition, end: IntArray) -> IntArray:
        """Return the least time from the end of a forward of stage k to the arrival of its gradient.

        `end` has the place after stage k in each partial partition. All later stages are taken to be on the fastest
        device, without recomputation.
        """
        tables, stages_after = self._tables, len(self._there) - 1 - k
        passes = tables.forward[-1] - tables.forward[end] + tables.gradient[-1] - tables.gradient[end]
        lags = int(self._there[-1] - self._there[k] + self._back[-1] - self._back[k])
        around: IntArray = self._fastest * (passes + stages_after * sum(tables.overhead)) + lags + tables.extra.around
        return around

    def fitting(self, rows: PartitionRows, device: DeviceId, own: list[ChainPosition], value: Ticks) -> PartitionRows:
        """Return the partial partitions with which load and memory of `device` meet the threshold of `value` ticks.

        `own` are the stages of the device. The extra time of the device is added to the labels.
        """
        tables, first, m = self._tables, own[0], self._m
        start, extra = rows.cuts[first], tables.extra
        stages = {k: numbers.copy() for k, numbers in rows.stages.items()}
        # All stages of processed devices are after the first stage of this device.
        stages[first][6] += rows.label
        head = extra.head + self._fastest * (tables.forward[start] + first * tables.overhead[0]) + self._there[first]
        tail = extra.tail + self._fastest * (tables.gradient[start] + first * tables.overhead[1]) + self._back[first]
        before, between, after = self._extra_times(device)
        gradients = m * sum(stages[k][7] for k in own)
        busy, load = between + (gradients if self._splits else m * rows.load), between + after + m * rows.load
        fits = (head + busy + tail <= value) & (before + load <= value)
        if not self._span:
            fits &= (head + load <= value) & (before + busy + tail <= value)
        for k in own:
            fits &= self._passes_fit(rows.cuts[k], k, stages[k], value)
        if tables.capacity:
            room = tables.capacity[device] - sum(stages[k][5] for k in own)
            fits &= (room >= 0) & (sum(stages[k][3] for k in own) <= room)
            open_ = 0 if self._span else head
            ends = ((3, 1, value - head - tail), (4, 2, value - open_))
            for memory, last, time in ends:
                memory_and_time = [(stages[k][memory], stages[k][0] + stages[k][6] + stages[k][last]) for k in own]
                # If a threshold is refuted, so are spans less than a tick above it, of which the stages share the time.
                fits &= _fit(memory_and_time, room, time + (self._span and len(own) > 1), m)
            if len(own) == 1:
                fits &= self._idle(stages[first], room, head, tail, value)
        found = rows._replace(label=rows.label + rows.extra_time)
        return found.take(fits)

    def _passes_fit(self, start: IntArray, k: ChainPosition, stage: IntArray, value: Ticks) -> Flags:
        """True, for each partial partition, where `value` ticks are enough for stage k's passes, one after the other.

        `start` has the place where stage k begins, `stage` its rows of `PartitionRows.stages`. A micro-batch's path
        there and back counts, and stage k's passes of the others. The last forward of a stage begins when all others
        have run; its micro-batch then goes on to the last stage and back to the first. The first gradient takes such a
        path to the stage, and the others follow it.
        """
        tables, extra = self._tables, self._tables.extra
        forward, gradient, around = stage[0], stage[1], stage[6]
        layers = tables.forward[start] + tables.gradient[start] + k * sum(tables.overhead)
        outside = extra.head + extra.tail + self._fastest * layers + self._there[k] + self._back[k]
        whole = outside + forward + around + gradient
        found: Flags = whole + (self._m - 1) * np.maximum(forward, gradient) <= value
        return found

    def _idle(self, stage: IntArray, room: IntArray, head: IntArray, tail: IntArray, value: Ticks) -> Flags:
        """True, for each partial partition, where `value` ticks leave time for a device to wait with full memory.

        Only for a device with one stage: once its memory `room` is full of activations it is idle until the first
        gradient. `stage` are the stage's rows of `PartitionRows.stages`; `head` and `tail` the ticks before its first
        forward and after its last gradient.
        """
        forward, _, backward, kept, _, _, around, _ = stage
        number = _number(kept, room, self._m)
        idle = np.where(number < self._m, around - (number - 1) * forward, 0)
        end: IntArray = head + self._m * (forward + backward) + idle
        if not self._splits:
            return end + tail <= value
        return np.full(len(end), True) if self._span else end <= value


def _fit(memory_and_time: list[tuple[IntArray, IntArray]], room: IntArray, time: IntArray | int, m: int) -> Flags:
    """True, for each partial partition, where the activations of a device fit its memory `room` within `time` ticks.

    `memory_and_time` has for each stage the memory of an activation and the time that each micro-batch occupies it; `m`
    is the number of micro-batches.
    """
    if len(memory_and_time) > 1:
        fits: Flags = sum(memory * each for memory, each in memory_and_time) <= room * np.maximum(time, 0) // m
        return fits
    memory, each = memory_and_time[0]
    number = np.maximum(_number(memory, room, m), 1)
    return (number >= m) | (-(-m // number) * each <= time)


def _number(memory: IntArray, room: IntArray, m: int) -> IntArray:
    """Return by partial partition how many micro-batches' activations of size `memory` fit `room`, at most `m`."""
    return np.where(memory > 0, np.minimum(np.maximum(room, 0) // np.maximum(memory, 1), m), m)
