"""Figures of a plan: the parts of its time, and the memory of each stage and device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.layers.stage_costs import StageCosts
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.results.plan import PlanCandidate
from pipesched.schedule.metrics import device_reach, measure


@dataclass(frozen=True)
class TimeParts:
    """The parts of a plan's value: `ideal` + `imbalance` + `recompute` + `bubble`, in the file's unit.

    `ideal` is all work without recomputation, spread over the devices by speed; `recompute` what recomputation adds to
    it; `imbalance` the busiest device's work beyond the mean; `bubble` its idle time.
    """

    ideal: Fraction
    imbalance: Fraction
    recompute: Fraction
    bubble: Fraction

    def document(self) -> dict[str, float]:
        return {name: float(getattr(self, name)) for name in ("ideal", "imbalance", "recompute", "bubble")}


class StepTime(NamedTuple):
    """The time of a whole training step, in the file's unit: the `pipeline` to the last backward, and what follows it.

    Each device reduces its gradients after its own last pass, unless passes hide that; `reduction` is the additional
    time until the last device has done so. `optimizer` is the optimizer step of the slowest device. Loading of data is
    not counted.
    """

    pipeline: Fraction
    reduction: Fraction
    optimizer: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        return self.pipeline + self.reduction + self.optimizer

    def document(self) -> dict[str, float]:
        """Return the object `step` of `--json`, in the file's unit: `total`, `pipeline`, `exchange` and `optimizer`.

        `exchange` is the reduction.
        """
        parts = (self.total, self.pipeline, self.reduction, self.optimizer)
        return {
            name: float(part) for name, part in zip(("total", "pipeline", "exchange", "optimizer"), parts, strict=True)
        }


@dataclass(frozen=True)
class StageRow:
    """One stage of a plan: its device, layers, costs, and recomputed layers.

    Layers are given as runs (layer type, number of equal layers), `costs` as they are on the device. `recomputed` is
    the number of recomputed layers by name of their mode, `again` by name of their type.
    """

    stage: StageId
    device: DeviceId
    runs: tuple[tuple[LayerType, int], ...]
    costs: StageCosts
    recomputed: dict[str, int]
    again: dict[str, int]

    @property
    def layers(self) -> str:
        """The layers of the stage as text, such as `embedding, 4 × layer`; `no layer` if it is empty."""
        runs = (one.name if number == 1 else f"{number} × {one.name}" for one, number in self.runs)
        return ", ".join(runs) or "no layer"

    @property
    def count(self) -> int:
        return sum(number for _, number in self.runs)


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of a device at its peak, and its capacity (None: unlimited), in the file's unit.

    Gathered parameters count as activations. `saved` is how much higher the peak would be without recomputation,
    estimated by the micro-batches in flight at the peak and the mean of the device's stages.
    """

    parameters: Fraction
    activations: Fraction
    saved: Fraction
    capacity: Fraction | None


def time_parts(plan: PlanProblem, best: PlanCandidate) -> TimeParts:
    """Return the parts of a plan's value; those of one micro-batch for a period."""
    problem, cluster = best.timeline.problem, plan.all_devices
    share = problem.tick / (problem.microbatches if plan.objective.repeats else 1)
    work = [ticks * share for ticks in best.metrics.work_ticks]
    # A device that takes twice a layer's time does half of what another does in the same time.
    done = sum((each / cluster.slowness_of(at) for at, each in enumerate(work)), Fraction(0))
    again = sum(
        row.costs.recomputation
        / cluster.slowness_of(row.device)
        * len(problem.microbatches_of[row.stage * best.choice.cut.number])
        / (problem.microbatches if plan.objective.repeats else 1)
        for row in stage_rows(plan, best)
    )
    mean, again = done / cluster.speed, again / cluster.speed
    return TimeParts(mean - again, max(work) - mean, again, best.value - max(work))


def step_time(plan: PlanProblem, best: PlanCandidate) -> StepTime:
    """Return the time of a step with a plan; without known reductions it is that of its pipeline.

    If the objective is the span, each device begins the next step by itself (optimizer post-validation, arXiv
    2401.10241, section 4): the pipeline then takes the longest time from a device's first pass to its last. A period
    has no steps: it is the time of one micro-batch.
    """
    if plan.objective.repeats:
        return StepTime(best.value, Fraction(0))
    problem, taken = best.timeline.problem, list[Fraction]()
    for device in range(problem.devices):
        begin, end = device_reach(best.timeline, device)
        taken.append((end - (begin if plan.objective.by_device else 0)) * problem.tick)
    return step_from_times(plan, best.choice, best.partition, taken)


def step_from_times(plan: PlanProblem, choice: Choice, partition: Partition, taken: Sequence[Fraction]) -> StepTime:
    """Return the time of a step in which the passes of device d take `taken[d]`, in the file's unit.

    Its parts are the longest passes, what the latest end of a reduction adds to them, and the longest optimizer step of
    a device.
    """
    known = ({}, {}) if plan.step is None else (plan.step.reduction, plan.step.optimizer)
    layers = partition.layers_of(plan.model)
    reductions, optimizers = (
        [sum((of.get(layer.name, Fraction(0)) for layer in of_stage), Fraction(0)) for of_stage in layers]
        for of in known
    )
    stages_of, reduced, stepped = choice.on(plan.cluster.devices).stages_of, list[Fraction](), [Fraction(0)]
    for device, time in enumerate(taken):
        # None on a module's own device, which is behind those of the placement.
        numbers = [stage % len(layers) for stages in stages_of[device : device + 1] for stage in stages]
        reduced.append(time + sum((reductions[stage] for stage in numbers), Fraction(0)))
        stepped.append(sum((optimizers[stage] for stage in numbers), Fraction(0)))
    return StepTime(max(taken), max(reduced) - max(taken), max(stepped))


def searched(plan: PlanProblem) -> str:
    """Return the placements that a bound over all plans covers, as text."""
    names = "; ".join(map(str, plan.choices))
    stages = "and also without a layer on some stages" if plan.model.empty_stages else "with a layer on every stage"
    return f"of the placement{'s' if plan.choices[1:] else ''} {names}, {stages}"


def stage_rows(plan: PlanProblem, best: PlanCandidate) -> list[StageRow]:
    """Return a row for every stage of the placement, in order, then for those of modules that feed it.

    A stage on two devices has two rows. Parts of modules that all devices share have none.
    """
    partition, placement = best.partition, best.choice.on(plan.cluster.devices)
    costs, layers = plan.costs(placement, partition), partition.layers_of(plan.model)
    counts, length = partition.recompute_counts(), partition.stages
    rows = []
    for stage in range(placement.stages):
        at = stage % length
        again = Counter[str]()
        for one in partition.recomputed_on(at):
            again[one.layer] += one.layers
        grouped = [list(group) for _, group in groupby(layers[at], key=lambda layer: layer.name)]
        runs = tuple((group[0], len(group)) for group in grouped)
        rows.append(StageRow(stage, placement.stage_device[stage], runs, costs[stage], counts[at], again))
    for module in plan.modules:
        for own in (stage for chain in module.chains for stage in chain):
            rows.append(StageRow(len(rows), own.device, ((module.layer, int(own.layers)),), own.costs, {}, {}))
    return rows


def device_memory(plan: PlanProblem, best: PlanCandidate) -> list[DeviceMemory]:
    """Return the memory of each device, by number, at its peak: parameters, activations, what recomputation saves."""
    problem, capacity = best.timeline.problem, plan.all_devices.capacity
    rows = stage_rows(plan, best)
    parts = [stage for module in plan.modules for stage in module.parts]
    peaks = measure(best.timeline).peak_quanta
    found = []
    for device in range(problem.devices):
        costs_of_stages = [row.costs for row in rows if row.device == device]
        activations = peaks[device] * problem.resolution
        per_microbatch = sum((costs.activation for costs in costs_of_stages), Fraction(0))
        saved = sum((costs.saved for costs in costs_of_stages), Fraction(0))
        found.append(
            DeviceMemory(
                sum(
                    (costs.memory for costs in costs_of_stages),
                    sum((one.costs.memory for one in parts if one.device == device), Fraction(0)),
                ),
                activations,
                activations * saved / per_microbatch if per_microbatch else Fraction(0),
                None if capacity is None else capacity[device],
            )
        )
    return found
