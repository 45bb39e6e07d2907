"""Best plan among those that a training framework runs unmodified: 1F1B or interleaved 1F1B on a few cuts.

Layers are recomputed as little as the memory requires: none, the same modules of all, a number of whole layers of every
stage, or all. A plan takes milliseconds for any number of micro-batches; its times and peaks equal those of the
simulator.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from heuristics.catalogue import schedule_named
from pipesched.layers.even import even_counts
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import FULL, ROLES, RecomputeRule, selections
from pipesched.layers.roles import Role, role_of
from pipesched.problem.quantities import Ticks
from pipesched.results.plan import PlanCandidate
from pipesched.results.plan_figures import StepTime, step_from_times
from solver.construction.timing import best_times
from solver.planning.quick.chunk_memory import in_flight, peaks
from solver.planning.quick.cuts import Cutter
from solver.planning.quick.layer_sums import LayerSums
from solver.planning.quick.order_ends import WholeArray, interleaved_ends, one_f_one_b_ends

_ONE, _SEVERAL = "1f1b", "interleaved-1f1b"
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class QuickPlan:
    """A plan without its timeline.

    `step` has the parts of the time of a training step, `step.total` their sum, both in the file's unit. `peak_memory`
    is that of each device, its parameters included, in the file's unit; `idle` is the share of the makespan that a
    device is idle, the mean over the devices. `schedule` is the name of the order.
    """

    choice: Choice
    partition: Partition
    schedule: str
    step: StepTime
    peak_memory: tuple[float, ...]
    idle: float

    def candidate(self, plan: PlanProblem) -> PlanCandidate:
        """Return the plan as a candidate, with its simulated timeline."""
        problem = plan.problem(self.choice, self.partition)
        order = schedule_named(self.schedule).order(problem)
        return PlanCandidate(self.choice, self.partition, best_times(problem, order), self.schedule)


class _Recomputation(NamedTuple):
    """Recomputation of a plan: the number of first transformer layers of each stage, or a mode's name by layer type."""

    first: tuple[int, ...] = ()
    modes: Mapping[str, str] = _NOTHING


class _TimedPlan(NamedTuple):
    """A plan to be timed: layers per stage, recomputation, stage times in ticks, and memory peak of each device.

    `counts` are the layers per stage; `forward` and `backward` the times by stage.
    """

    counts: tuple[int, ...]
    recomputation: _Recomputation
    forward: WholeArray
    backward: WholeArray
    peaks: WholeArray


def quick_plan(plan: PlanProblem) -> QuickPlan | None:
    """Return the plan with the least training step that fits the memory, under 1F1B or interleaved 1F1B.

    Compared are the plans of the placements; that of a placement is the one whose last pass ends first. None where no
    plan fits, where the file allows neither order or no placement that runs it (linear, interleaved; micro-batches
    whole), or where the problem has features that these orders or the formulas for their times do not support:
    variants, modules, unequal devices or links, transfers on a stream, work for parameters.
    """
    if plan.variants or plan.additions or plan.cluster.links or plan.cluster.transfer_stream:
        return None
    parameters = plan.model.parameters
    if parameters.gather or parameters.reduce or parameters.step or plan.cluster.slowness:
        return None
    sums = LayerSums(plan)
    found = [_Orders(plan, sums, choice).best() for choice in plan.choices]
    return min((one for one in found if one is not None), key=lambda one: one.step.total, default=None)


class _Orders:
    """The plans of one placement under the order that it runs, 1F1B or interleaved 1F1B, and the best of them."""

    def __init__(self, plan: PlanProblem, sums: LayerSums, choice: Choice) -> None:
        self._plan, self._sums, self._choice = plan, sums, choice
        self._devices, self._chunks = plan.cluster.devices, choice.chunks
        self._stages = self._devices * self._chunks
        self._room = [None if room is None else int(room / plan.resolution) for room in self._capacity()]

    def best(self) -> QuickPlan | None:
        """Return the plan whose last pass ends first.

        None if neither 1F1B nor interleaved 1F1B runs on the placement or the file allows neither, or nothing fits.
        """
        name = self._name()
        if name is None:
            return None
        rows = [row for counts in dict.fromkeys(self._cuts()) for row in self._fitting(counts)]
        if not rows:
            return None
        ends = self._ends(rows)
        at = min(range(len(rows)), key=lambda at: int(ends[at].max()))
        return self._plan_of(name, rows[at], [int(end) for end in ends[at]])

    def _name(self) -> str | None:
        """Return the name in the catalogue of the order that this placement runs; None if neither runs here."""
        plan, choice = self._plan, self._choice
        name = _ONE if self._chunks == 1 else _SEVERAL
        placed = choice.placement == "linear" or (choice.placement == "interleaved" and self._devices > 1)
        if not placed or not choice.whole or (plan.schedules and name not in plan.schedules):
            return None
        if choice.placement == "interleaved" and (self._chunks == 1 or plan.microbatches % self._devices):
            return None
        return name if self._stages <= plan.model.most_stages else None

    def _capacity(self) -> Sequence[Fraction | None]:
        return self._plan.cluster.capacity or [None] * self._devices

    def _cuts(self) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of layers per stage to try: even, by load, and by load with recomputation.

        Those by load also within the memory. Where the problem gives the partition, that one alone.
        """
        plan, sums = self._plan, self._sums
        if plan.counts is not None:
            yield from [plan.counts] * (len(plan.counts) == self._stages)
            return
        even = even_counts(plan.model, self._stages)
        if even is not None:
            yield even
        if plan.even:
            return
        cutter, load = Cutter(plan.model.cuts, self._stages), sums.forward + sums.backward
        flights = [many / self._chunks for many in in_flight(self._devices, self._chunks, plan.microbatches)]
        limits = [None if room is None else room / self._chunks for room in self._room]
        own, limited = (flights * self._chunks, limits * self._chunks)
        free: list[float | None] = [None] * self._stages
        every = sums.recomputed(self._whole_modes())
        columns = [(load, sums.activation), (load + every.time, sums.activation - every.saved)]
        for loads, activation in columns if plan.recompute is Decide.FREE and plan.model.recomputes else columns[:1]:
            for room in (free, limited):
                found = cutter.by_load(loads, sums.memory, activation, own, room)
                if found is not None:
                    yield found

    def _whole_modes(self) -> dict[str, str]:
        """Return, by type of transformer or multi-token-prediction layers, the mode that recomputes the whole layer.

        With `recompute: always`, the first mode of every type that can be recomputed.
        """
        kinds = self._plan.model.kinds
        if self._plan.recompute is Decide.ALWAYS:
            return {kind.name: kind.recompute[0].name for kind in kinds if kind.recompute}
        whole = [kind for kind in kinds if any(mode.name in FULL for mode in kind.recompute)]
        return {kind.name: FULL[0] for kind in whole if role_of(kind.name) in ROLES}

    def _fitting(self, counts: tuple[int, ...]) -> Iterator[_TimedPlan]:
        """Yield the plans with these `counts` of layers per stage that fit the memory.

        That is the one without recomputation, if it fits; else one with the least recomputation of each kind: modules,
        whole layers, all layers.
        """
        plan = self._plan
        if plan.recompute is Decide.ALWAYS:
            yield from self._rows(counts, [_Recomputation(modes=self._whole_modes())])
            return
        bare = [*self._rows(counts, [_Recomputation()])]
        if bare or plan.recompute is Decide.NEVER or not plan.model.recomputes:
            yield from bare
            return
        rule = plan.recompute_rule
        if rule in (RecomputeRule.SAME, RecomputeRule.ANY):
            yield from self._least([_Recomputation(modes=modes) for modes in selections(plan.model.kinds)], counts)
        if rule is not RecomputeRule.ALL and self._sums.full is not None:
            numbers = self._transformer_layers(counts)
            yield from self._fewest(
                counts, [_Recomputation(tuple(min(n, each) for each in numbers)) for n in range(max(numbers) + 1)]
            )
            if rule is not RecomputeRule.SAME:
                yield from self._rows(counts, [_Recomputation(self._as_few(counts, numbers))])
        yield from self._rows(counts, [_Recomputation(modes=self._whole_modes())])

    def _least(self, options: list[_Recomputation], counts: tuple[int, ...]) -> Iterator[_TimedPlan]:
        """Yield, of the recomputation `options` that fit the memory, the plan whose busiest stage takes the least time.

        `counts` are the layers per stage; nothing is yielded if none fits.
        """
        rows = [*self._rows(counts, options)]
        if rows:
            yield min(rows, key=lambda row: int((row.forward + row.backward).max()))

    def _fewest(self, counts: tuple[int, ...], options: Sequence[_Recomputation]) -> Iterator[_TimedPlan]:
        """Yield the plan with the first of `options` that fits the memory, found by bisection; nothing if none fits.

        `counts` are the layers per stage. Each option recomputes more than the one before it, and the first is known
        not to fit.
        """
        at = bisect_left(options, True, 1, key=lambda recomputation: any(self._rows(counts, [recomputation])))
        yield from self._rows(counts, options[at : at + 1])

    def _as_few(self, counts: tuple[int, ...], numbers: list[int]) -> tuple[int, ...]:
        """Return the layers to recompute on each stage: on each device as few as it needs to fit its memory.

        `counts` are the layers per stage, `numbers` those of them that can be recomputed whole. The stages of one
        device have the same number, as far as they have the layers. All layers are recomputed on devices that never
        fit.
        """
        left, found = set(range(self._devices)), [0] * self._stages
        for n in range(max(numbers) + 1):
            for s in range(self._stages):
                if s % self._devices in left:
                    found[s] = min(n, numbers[s])
            needs = self._peaks(counts, _Recomputation(tuple(found)))
            left = {d for d, room in enumerate(self._room) if d in left and room is not None and int(needs[d]) > room}
            if not left:
                break
        return tuple(found)

    def _transformer_layers(self, counts: tuple[int, ...]) -> list[int]:
        at = np.cumsum([0, *counts])
        return [int(each) for each in np.diff(self._sums.number[at])]

    def _rows(self, counts: tuple[int, ...], options: Sequence[_Recomputation]) -> Iterator[_TimedPlan]:
        """Yield the plan with each recomputation of `options` that fits the memory of every device.

        `counts` are layers per stage.
        """
        model, at = self._plan.model, np.cumsum([0, *counts])
        overheads = [int(each / self._plan.tick) for each in (model.forward_overhead, model.backward_overhead)]
        forward = np.diff(self._sums.forward[at]) + overheads[0]
        backward = np.diff(self._sums.backward[at]) + overheads[1]
        for recomputation in options:
            needs = self._peaks(counts, recomputation)
            if all(room is None or int(most) <= room for most, room in zip(needs, self._room, strict=True)):
                yield _TimedPlan(counts, recomputation, forward, backward + self._again(at, recomputation)[0], needs)

    def _again(self, at: WholeArray, recomputation: _Recomputation) -> tuple[WholeArray, WholeArray]:
        """Return (ticks, memory) by stage: what recomputation adds to the backward, and what it saves.

        `at` has the number of layers before each stage, and of all.
        """
        if recomputation.first:
            assert self._sums.full is not None
            begin = self._sums.number[at[:-1]]
            end = begin + np.array(recomputation.first)
            time, saved = self._sums.full
            return time[end] - time[begin], saved[end] - saved[begin]
        time, saved = self._sums.recomputed(recomputation.modes)
        return np.diff(time[at]), np.diff(saved[at])

    def _peaks(self, counts: tuple[int, ...], recomputation: _Recomputation) -> WholeArray:
        """Return the peak memory of each device, in steps of memory, including its parameters.

        `counts` are layers per stage.
        """
        at = np.cumsum([0, *counts])
        activation = np.diff(self._sums.activation[at]) - self._again(at, recomputation)[1]
        memory = self._by_device(np.diff(self._sums.memory[at])).sum(axis=1)
        needs: WholeArray = memory + peaks(self._by_device(activation), self._plan.microbatches)
        return needs

    def _by_device(self, stages: WholeArray) -> WholeArray:
        """Return values by stage as an array of shape (devices, chunks)."""
        return stages.reshape(self._chunks, self._devices).T

    def _ends(self, rows: Sequence[_TimedPlan]) -> WholeArray:
        forward, backward = (
            np.stack([self._by_device(each) for each in column])
            for column in zip(*((row.forward, row.backward) for row in rows), strict=True)
        )
        lag, m = int(self._plan.cluster.transfer / self._plan.tick), self._plan.microbatches
        gradients = np.stack([self._by_device(self._gradient_lags(row.counts, lag)) for row in rows])
        if self._chunks == 1:
            return one_f_one_b_ends(forward[:, :, 0], backward[:, :, 0], lag, gradients[:, :, 0], m)
        return interleaved_ends(forward, backward, lag, gradients, m)

    def _gradient_lags(self, counts: tuple[int, ...], lag: Ticks) -> WholeArray:
        """Return the ticks that a gradient takes to each stage: `lag`, or 0 for a stage to which no gradient is sent.

        That is a stage before all layers that train; `counts` are the layers per stage.
        """
        return np.where(np.cumsum(counts) <= self._plan.model.before_training, 0, lag)

    def _plan_of(self, name: str, row: _TimedPlan, ends: list[Ticks]) -> QuickPlan:
        plan, m = self._plan, self._plan.microbatches
        partition = Partition(row.counts, self._recomputed(row))
        work = [m * int(each) for each in self._by_device(row.forward + row.backward).sum(axis=1)]
        return QuickPlan(
            self._choice,
            partition,
            name,
            step_from_times(plan, self._choice, partition, [end * plan.tick for end in ends]),
            tuple(float(int(most) * plan.resolution) for most in row.peaks),
            1 - sum(work) / (len(work) * max(ends)) if max(ends) else 0.0,
        )

    def _recomputed(self, row: _TimedPlan) -> tuple[tuple[Recomputed, ...], ...]:
        """Return the recomputation of a row in the form of `Partition.recompute`; empty if nothing is recomputed."""
        found = []
        for stage, layers in enumerate(Partition(row.counts).layers_of(self._plan.model)):
            if row.recomputation.first:
                first = [layer.name for layer in layers if role_of(layer.name) is Role.TRANSFORMER]
                number = Counter(first[: row.recomputation.first[stage]])
                found.append(tuple(Recomputed(name, FULL[0], many) for name, many in number.items()))
            else:
                number, modes = Counter(layer.name for layer in layers), row.recomputation.modes
                found.append(
                    tuple(Recomputed(name, modes[name], many) for name, many in number.items() if name in modes)
                )
        return tuple(found) if any(found) else ()
