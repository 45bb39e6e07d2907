"""Check that no partition of a placement admits a plan below a value: all cuts, device by device.

Every device must have time for its passes, the path to its first stage and back, and memory for its activations for
their lifetimes. Devices are taken one by one, the one whose first stage is last on the chain first. Of the earlier
devices only two quantities matter to the next ones: the cuts between them, and how much longer than on the fastest
device without recomputation the path through their stages is; of equal cuts the least such time represents all.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np

from pipesched.checking.partitions.stage_options import Array, Costs, Fits, Options
from pipesched.layers.even import even_counts
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.objectives.period import PERIOD
from pipesched.problem.quantities import DeviceId, Ticks

# A stage by its place on the placement's only chain, from 0.
ChainPosition: TypeAlias = int
# Rows beyond which nothing is said, and the bits that products of memory and time may take.
_MOST_ROWS, _BITS = 8_000_000, 61


class _Rows(NamedTuple):
    """Partial partitions as rows of arrays.

    `cuts` has by number of a cut (cut k is before stage k of the chain) its index in `Costs.cuts`; unknown cuts are
    missing. In ticks, `work` is that of all stages so far, `before` and `longer` by how much the path through the
    stages of earlier devices and of this one exceeds the shortest, `left` this device's time left. `stages` are the
    options of this device's stages, the last first, and `around` the ticks from the end of a stage's F to its B,
    without what earlier devices add.
    """

    cuts: dict[int, Array]
    work: Array
    before: Array
    longer: Array
    left: Array
    stages: list[Options]
    around: list[Array]

    def take(self, which: Array | Fits) -> _Rows:
        stages = [Options(*(column[which] for column in stage)) for stage in self.stages]
        cuts = {number: cut[which] for number, cut in self.cuts.items()}
        around = [ticks[which] for ticks in self.around]
        return _Rows(cuts, self.work[which], self.before[which], self.longer[which], self.left[which], stages, around)


class _TooManyError(Exception):
    """There are more partial partitions than the check looks at."""


def no_better_plan(plan: PlanProblem, choice: Choice, bound: Fraction) -> bool | None:
    """Return True if no partition has a plan below `bound`, in the file's unit; False if some may have one.

    None if the problem is not covered, or has too many partitions. Covered are makespan, span and period for whole
    micro-batches on one chain, if all work is in its stages.
    """
    of_passes = plan.objective.passes is None and not plan.model.parameters.some
    if not of_passes or plan.additions or not choice.whole or len(choice.on(plan.cluster.devices).chains) > 1:
        return None
    try:
        return _ByDevice(plan, choice, bound / plan.tick).none_remains()
    except _TooManyError:
        return None


def none_fits(plan: PlanProblem, choice: Choice) -> bool | None:
    """Return True if no partition fits the memory, whatever its time; False if some may.

    None if the problem is not covered, or has too many partitions.
    """
    model, cluster = plan.model, plan.cluster
    fixed = model.forward_overhead + model.backward_overhead + 2 * cluster.longest_lag
    times = (
        one.forward + max(one.full_backward, one.least_backward) + max((mode.time for mode in one.recompute), default=0)
        for one in model.sequence
    )
    # No device works longer than this on a micro-batch, and no round trip takes longer.
    longest = max(cluster.slowness or (Fraction(1),)) * sum((time + fixed for time in times), fixed)
    return no_better_plan(replace(plan, objective=PERIOD), choice, longest + plan.tick)


class _ByDevice:
    """The search for partitions of a placement that admit a plan below `bound` ticks, device by device.

    Such a plan takes at most `_value` whole ticks; a span or period, which may be a fraction, less than `_value` + 1.
    Of a period the passes of one micro-batch are looked at, as often as it repeats.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, bound: Fraction) -> None:
        cluster, placement, value = plan.cluster, choice.on(plan.cluster.devices), ceil(bound) - 1
        self._bound, self._repeats = bound, plan.objective.repeats
        where = [placement.stage_device[stage] for stage in placement.chains[0]]
        stages_of_device = {device: [k for k, at in enumerate(where) if at == device] for device in where}
        self._devices = [*reversed(stages_of_device.items())]
        self._m = 1 if self._repeats else plan.microbatches
        self._value, self._stages = value, len(where)
        self._least_layers = 0 if plan.model.empty_stages else 1
        self._split, self._span = plan.model.splittable, plan.objective.by_device
        transfers = [
            [int(cluster.lag(*direction) / plan.tick) for direction in ((a, b), (b, a))] for a, b in pairwise(where)
        ]
        lags = [[there, plan.least_gradient_lag(k, back)] for k, (there, back) in enumerate(transfers)]
        self._lags = np.array([[0, 0], *lags]).cumsum(axis=0)
        most = 2 ** max(0, _BITS - ((value + 2) * self._m).bit_length())
        step = max(plan.resolution, max(cluster.capacity or (), default=Fraction(0)) / most)
        self._room = [ceil(each / step) for each in cluster.capacity or ()]
        costs, slow = Costs(plan, step), {device: cluster.slowness_of(device) for device in stages_of_device}
        self._last_cut, quick = len(costs.cuts) - 1, costs.times(min(slow.values()))
        self._quick, self._work = quick[:2], sum(int(quick[n][0][-1]) + self._stages * quick[n][1] for n in (0, 2))
        # What each device computes of a micro-batch at most, in the time of the fastest one.
        self._most = [int(value // self._m * min(slow.values()) / slow[device]) for device, _ in self._devices]
        known = {each: costs.options(each, min(slow.values()), value // self._m) for each in {*slow.values()}}
        self._options = {device: known[each] for device, each in slow.items()}
        counts = even_counts(plan.model, self._stages) if plan.even else plan.counts
        self._given = counts and np.searchsorted(costs.cuts, np.array([0, *counts]).cumsum())

    def none_remains(self) -> bool:
        """Return True if no partition is possible, False if some may be; `_TooManyError` if they are too many.

        Partial partitions are extended device by device.
        """
        zero = np.zeros(1, np.int64)
        cuts, work, before = {0: zero, self._stages: zero + self._last_cut}, zero, zero
        for number, (device, stages) in enumerate(self._devices):
            rows = _Rows(cuts, work, before, 0 * work, 0 * work + self._value // self._m, [], [])
            needed = self._work - sum(self._most[number + 1 :])
            for k in reversed(stages):
                rows = self._with_stage(rows, k, self._options[device], needed if k == stages[0] else 0)
            if not self._repeats:
                rows = rows.take(self._in_time(rows, stages[0]))
                rows = rows.take(self._one_by_one(rows, stages))
            rows = rows.take(self._in_memory(rows, stages[0], device))
            later = {cut for _, stages in self._devices[number + 1 :] for k in stages for cut in (k, k + 1)}
            cuts, work, before = _least(rows, sorted(later & {*rows.cuts} | {0, self._stages}))
            if not len(before):
                return True
        return False

    def _with_stage(self, rows: _Rows, k: ChainPosition, options: Options, needed: Ticks) -> _Rows:
        """Return each row extended by each stage between cuts k and k + 1 that fits the known cuts and the time left.

        With the stage, the devices so far must do the work `needed`, since the others have no time for more. Raises
        `_TooManyError` if there are too many rows.
        """
        if self._given is not None:
            these = (options.begin == self._given[k]) & (options.end == self._given[k + 1])
            options = Options(*(column[these] for column in options))
        asked, there = 0 * rows.before, 0 * options.begin
        for cut, ends in ((k, options.begin), (k + 1, options.end)):
            if cut in rows.cuts:
                asked, there = asked * (self._last_cut + 1) + rows.cuts[cut], there * (self._last_cut + 1) + ends
        order = np.argsort(there, kind="stable")
        first, last = (np.searchsorted(there[order], asked, side) for side in ("left", "right"))
        number = last - first
        if number.sum() > _MOST_ROWS:
            raise _TooManyError
        row = np.repeat(np.arange(len(number)), number)
        option = order[np.arange(len(row)) + np.repeat(first - number.cumsum() + number, number)]
        takes = options.forward + options.backward
        fits = (takes[option] <= rows.left[row]) & (rows.work[row] + options.work[option] >= needed)
        rows, chosen = rows.take(row[fits]), Options(*(column[option[fits]] for column in options))
        path = sum(ticks[-1] - ticks[chosen.end] + (self._stages - 1 - k) * added for ticks, added in self._quick)
        around = path + (self._lags[-1] - self._lags[k]).sum() + rows.longer
        found = _Rows(
            rows.cuts | {k: chosen.begin, k + 1: chosen.end},
            rows.work + chosen.work,
            rows.before,
            rows.longer + chosen.longer,
            rows.left - chosen.forward - chosen.backward,
            [*rows.stages, chosen],
            [*rows.around, around],
        )
        least, between = self._least_layers, pairwise(sorted(found.cuts.items()))
        return found.take(np.all([cut - at >= least * (b - a) for (a, at), (b, cut) in between], axis=0))

    def _there_and_back(self, rows: _Rows, first: ChainPosition) -> tuple[Array, Array]:
        """Return by row the ticks before the device's first F, on stage `first`, and those after its last B."""
        directions = zip(self._quick, self._lags[first], strict=True)
        there, back = (ticks[rows.cuts[first]] + first * added + lags for (ticks, added), lags in directions)
        return there, back

    def _in_time(self, rows: _Rows, first: ChainPosition) -> Fits:
        """Return the mask of rows whose device has time for its work between the path to it and the path back.

        Its W may also run during the path back. `first` is the device's first stage on the chain.
        """
        there, back = self._there_and_back(rows, first)
        all_ = self._m * np.sum([own.forward + own.backward for own in rows.stages], axis=0)
        gradients = self._m * np.sum([own.busy for own in rows.stages], axis=0)
        fits: Fits = there + (gradients if self._split else all_) + back <= self._value
        return fits if self._span else fits & (there + all_ <= self._value)

    def _one_by_one(self, rows: _Rows, stages: list[ChainPosition]) -> Fits:
        """Return the mask of rows in which each stage has time for all its forwards and gradients, one at a time.

        `stages` are all stages of the device, in ascending order. All micro-batches traverse the chain and return. On a
        stage they pass one at a time: the last to go forward has waited for the forwards of all others, and the last to
        come back, after the first, for all other gradients.
        """
        fits: Fits = np.full(len(rows.before), True)
        # Those of the devices before come after this one's first stage, which is the last in its list.
        arounds = [*rows.around[:-1], rows.around[-1] + rows.before]
        for k, stage, around in zip(reversed(stages), rows.stages, arounds, strict=True):
            there, back = self._there_and_back(rows, k)
            path = there + stage.forward + around + stage.gradient + back
            for pass_ticks in (stage.forward, stage.gradient):
                fits &= path + (self._m - 1) * pass_ticks <= self._value
        return fits

    def _in_memory(self, rows: _Rows, first: ChainPosition, device: DeviceId) -> Fits:
        """Return the mask of rows whose memory admits all activations for their lifetimes.

        `first` is the device's first stage on the chain.
        """
        if not self._room:
            return np.full(len(rows.before), True)
        room = self._room[device] - np.sum([own.always for own in rows.stages], axis=0)
        fits: Fits = (room >= 0) & (np.sum([own.kept for own in rows.stages], axis=0) <= room)
        # Those of the devices before come after this one's first stage, which is the last in its list.
        around = [*rows.around[:-1], rows.around[-1] + rows.before]
        if self._repeats:
            return fits & self._repeating(rows, around, room)
        there, back = self._there_and_back(rows, first)
        to_gradient = [own.forward + path + own.gradient for own, path in zip(rows.stages, around, strict=True)]
        to_end = [own.forward + path + own.backward for own, path in zip(rows.stages, around, strict=True)]
        time, to_the_end = self._value - there - back, self._value - (0 * there if self._span else there)
        fits &= self._share([own.kept for own in rows.stages], to_gradient, room, time)
        fits &= self._share([own.kept_late for own in rows.stages], to_end, room, to_the_end)
        if len(rows.stages) == 1 and not (self._span and self._split):
            # Until the first activation is given back no more of them are taken than fit.
            (own,), number = rows.stages, _number(rows.stages[0].kept, room, self._m)
            waits = np.where(number < self._m, around[0] - (number - 1) * own.forward, 0)
            end = there + self._m * (own.forward + own.backward) + waits
            fits &= end + (0 if self._split else back) <= self._value
        return fits

    def _repeating(self, rows: _Rows, around: list[Array], room: Array) -> Fits:
        """Return the mask of rows whose stages have time for their round trips within the periods that memory allows.

        `around` has, for each stage of the device, the ticks from the end of its F to its B by row; `room` the memory
        by row.
        """
        fits: Fits = np.full(len(rows.before), True)
        for stage, path in zip(rows.stages, around, strict=True):
            # No round trip is longer than that of all work and transfers, so that more micro-batches limit nothing.
            trip = stage.forward + path + stage.gradient
            most = int(trip.max(initial=0)) + 1
            fits &= trip * self._bound.denominator < _number(stage.kept, room, most) * self._bound.numerator
        return fits

    def _share(self, amounts: list[Array], ticks: list[Array], room: Array, time: Array) -> Fits:
        """Return the mask of rows in which all micro-batches fit.

        On each stage of the device each takes `amounts` of memory for `ticks`: a list by stage, arrays by row. All of
        it must be within `room` times the ticks `time`, both by row.
        """
        if len(amounts) == 1:
            number = _number(amounts[0], room, self._m)
            return np.asarray((number >= self._m) | (-(-self._m // number) * ticks[0] <= time))
        memory_ticks = [amount * np.minimum(long, self._value + 1) for amount, long in zip(amounts, ticks, strict=True)]
        shared: Fits = self._m * np.sum(memory_ticks, axis=0) <= room * (time + self._span)
        return shared


def _number(amount: Array, room: Array, most: int) -> Array:
    """Return by row how many activations of size `amount` fit into `room` at once, at least 1 and at most `most`.

    That one fits is checked elsewhere; an activation of size 0 gives `most`.
    """
    return np.where(amount > 0, np.clip(room // np.maximum(amount, 1), 1, most), most)


def _least(rows: _Rows, bordering: list[int]) -> tuple[dict[int, Array], Array, Array]:
    """Return the cuts, work and path increase of the best row of each set with equal `bordering` cuts.

    `bordering` are the numbers of the cuts next to stages of later devices; the best row is that with the least path
    increase.
    """
    longer, columns = rows.before + rows.longer, [rows.cuts[cut] for cut in bordering]
    order = np.lexsort((longer, *columns))
    known = np.stack([column[order] for column in columns])
    first = order[np.append(True, (known[:, 1:] != known[:, :-1]).any(axis=0))[: len(order)]]
    return {cut: rows.cuts[cut][first] for cut in bordering}, rows.work[first], longer[first]
