"""Lower bound over all partitions of one placement: a threshold is refuted by dynamic programming over the devices.

Devices are processed in descending order of their first stage. A state holds the cuts at which stages of processed
devices border on stages of the others; its label is the least extra time on the path to the last stage and back, over
that without recomputation and on the fastest device. Among states with equal cuts the least label dominates. A
threshold is refuted if no state is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.partition.bound_rows import mean_load
from formulations.partition.stage_terms import ChainPosition
from pipesched.int64_arrays import IntArray
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.quantities import DeviceId, Ticks
from solver.parameters import tunable, tuned
from solver.planning.partitions.device_rows import DeviceRows, PartitionRows
from solver.planning.partitions.stage_tables import StageTables


@dataclass(frozen=True)
@tunable
class PartitionBoundParams:
    """Limits of the lower bound by dynamic programming over devices: states, and how near thresholds are tried."""

    most_states: int = tuned(
        400_000, "states, each with its recomputation, beyond which nothing is refuted", 1000, 10**8
    )
    near: float = tuned(
        0.0002, "of the value: thresholds closer than this are not told apart", 0, 0.1,
        "kimi-k2-80gb 1.5 s (1.3 with .001), llama3-70b-80gb 6.7 s (5.4); bounds .01 to .08 % higher",
    )  # fmt: skip


_PARAMS = PartitionBoundParams()


def applies(plan: PlanProblem, choice: Choice) -> bool:
    """True if the bound by devices supports the problem.

    It does for makespan or span, whole micro-batches on one chain, and no passes for parameters.
    """
    passes = plan.objective.of_one_iteration and not plan.model.parameters.some
    return passes and choice.whole and len(choice.on(plan.cluster.devices).chains) == 1


def bound_by_device(plan: PlanProblem, choice: Choice, upper: Ticks | None, late: Callable[[], bool]) -> Ticks:
    """Return a lower bound in ticks on every plan of the placement; the mean load where the method does not apply.

    `upper` is the value of a known plan, or None. The bound never exceeds it, and equals it if it was proved in time
    that no plan is better. Thresholds from the mean load upwards are refuted one after the other, and then by
    bisection, until `late()` is True.
    """
    least = mean_load(plan, choice)
    if not applies(plan, choice) or late():
        return least
    search, step = ByDevice(plan, choice), max(1, least // 100)
    # Thresholds near the bound leave few states, higher ones many more: so they grow from the bound, with doubled
    # steps.
    known = least
    most = 8 * least if upper is None else upper
    while not late() and known < most:
        tried = min(most, known + step)
        if not search.refutes(tried - 1, late):
            break
        known, step = tried, 2 * step
    else:
        return known
    while tried - known > max(1, int(_PARAMS.near * known)) and not late():
        middle = (known + tried) // 2
        if search.refutes(middle - 1, late):
            known = middle
        else:
            tried = middle
    # If the value of the best known plan is as near, possibly no plan is better.
    if upper is not None and known < upper <= tried and not late() and search.refutes(upper - 1, late):
        return upper
    return known


class ByDevice:
    """Dynamic programming over the devices that refutes thresholds for all partitions of the placement `choice`.

    `applies(plan, choice)` must be True.
    """

    def __init__(self, plan: PlanProblem, choice: Choice) -> None:
        placement = choice.on(plan.cluster.devices)
        self._plan, self._tables = plan, StageTables(plan, choice)
        self._rows = DeviceRows(plan, choice, self._tables)
        self._stages = len(placement.chains[0])
        place = {stage: at for at, stage in enumerate(placement.chains[0])}
        places_of_devices = [sorted(place[stage] for stage in own) for own in placement.stages_of]
        order = sorted((own, device) for device, own in enumerate(places_of_devices) if own)
        self._order = [(device, own) for own, device in reversed(order)]
        self._given = None if plan.counts is None else np.array([0, *plan.counts]).cumsum()

    def refutes(self, value: Ticks, late: Callable[[], bool] = lambda: False) -> bool:
        """True if it is proved that no partition has a plan of at most `value` ticks.

        False where such a partition may exist, where `late()` became True, or where there were too many states.
        """
        cuts = {0: np.zeros(1, np.int64), self._stages: np.full(1, len(self._tables.places) - 1)}
        label, work = np.zeros(1, np.int64), np.zeros(1, np.int64)
        left = [each for _, own in self._order for each in own]
        for number, (device, own) in enumerate(self._order):
            left = left[len(own) :]
            live = {0, self._stages, *left, *(k + 1 for k in left)} & {*cuts, *own, *(k + 1 for k in own)}
            rows = PartitionRows(cuts, label, work, np.zeros(len(label), np.int64), {}, np.zeros(len(label), np.int64))
            for k in reversed(own):
                for cut in (k + 1, k):
                    if cut not in rows.cuts:
                        rows = self._cut(rows, cut, k, device, value)
                if k == own[0]:
                    # The work that the other devices have no time for must be done by the processed devices.
                    others = self._rows.most_work([other for other, _ in self._order[number + 1 :]], value)
                    rows = rows.take(rows.work + self._work(rows, k) >= self._work_of_all - others)
                if rows.rows > _PARAMS.most_states or late():
                    return False
                rows = self._rows.with_stage(rows, device, k, value)
            rows = self._rows.fitting(rows, device, own, value)
            if not rows.rows:
                return True
            cuts, label, work = self._least(rows, sorted(live))
        return False

    @property
    def _work_of_all(self) -> int:
        return int(self._tables.forward[-1] + self._tables.backward[-1]) + self._stages * sum(self._tables.overhead)

    def _work(self, rows: PartitionRows, k: ChainPosition) -> IntArray:
        total = self._tables.forward + self._tables.backward
        work: IntArray = total[rows.cuts[k + 1]] - total[rows.cuts[k]] + sum(self._tables.overhead)
        return work

    def _cut(
        self, rows: PartitionRows, cut: int, stage: ChainPosition, device: DeviceId, value: Ticks
    ) -> PartitionRows:
        """Return the rows, each repeated for every position of cut `cut` that the load limit of `device` allows.

        The limit is the work that fits the threshold of `value` ticks. Positions lie between the cuts already known.
        """
        known = sorted(rows.cuts)
        previous, following = max(k for k in known if k < cut), min(k for k in known if k > cut)
        least = self._plan.model.least_layers  # places of a stage at least, as every layer is one or shares its own
        low, high = rows.cuts[previous] + least * (cut - previous), rows.cuts[following] - least * (following - cut)
        if self._given is not None:
            given = int(np.searchsorted(self._tables.places, self._given[cut]))
            low, high = np.maximum(low, given), np.minimum(high, given)
        total, most = self._tables.forward + self._tables.backward, self._rows.most_work([device], value)
        if cut == stage and stage + 1 in rows.cuts:
            low = np.maximum(low, np.searchsorted(total, total[rows.cuts[stage + 1]] - most))
        elif cut == stage + 1 and stage in rows.cuts:
            high = np.minimum(high, np.searchsorted(total, total[rows.cuts[stage]] + most, side="right") - 1)
        counts = np.maximum(high - low + 1, 0)
        which = np.repeat(np.arange(len(counts)), counts)
        first = np.concatenate(([0], counts.cumsum()[:-1])) if len(counts) else counts
        found = rows.take(which)
        return found._replace(cuts=found.cuts | {cut: low[which] + np.arange(len(which)) - first[which]})

    def _least(self, rows: PartitionRows, live: list[int]) -> tuple[dict[int, IntArray], IntArray, IntArray]:
        """Keep one partial partition of least label of those in `rows` that agree in the positions of cuts `live`.

        Returns the positions of those cuts, the labels and the work of the partitions kept.
        """
        order = np.lexsort((rows.label, *(rows.cuts[cut] for cut in live)))
        known = np.stack([rows.cuts[cut][order] for cut in live])
        first = order[np.concatenate(([True], (known[:, 1:] != known[:, :-1]).any(axis=0)))]
        return {cut: rows.cuts[cut][first] for cut in live}, rows.label[first], rows.work[first]
