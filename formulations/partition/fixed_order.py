"""Rows of a partition's variables for a given order of passes: its memory levels, and the lengths of its paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ortools.sat.python import cp_model

from formulations.partition.partition_model import PartitionModel
from formulations.partition.stage_terms import Linear
from pipesched.problem.network.task_network import PassType
from pipesched.problem.passes import BW, REDUCE, RESHARD, STEP, UNSHARD, B, F, PassKind, W
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.schedule.schedule import Schedule

# How often passes of each kind and stage lie on a path, and blocks by the stages of forward and backward.
Counts = Iterable[tuple[PassType, int]]
Blocks = Iterable[tuple[tuple[StageId, StageId], int]]


def add_path(model: PartitionModel, value: cp_model.IntVar, passes: Counts, lags: Ticks, blocks: Blocks = ()) -> None:
    """Add a Benders cut: the objective is at least the length of one path through passes, blocks and transfers.

    `passes` are pairs of (kind, stage) and the number of such passes on the path, `blocks` pairs of (stage of the
    forward, of the backward) and their number; `lags` is the sum of the path's transfers in ticks.
    """

    # Sums, never `+=`: that changes the expression on its left, which may be a stage's own.
    def ticks(kind: PassKind, stage: int) -> Linear:
        terms = model.of_stage(stage)
        own = {UNSHARD: terms.gather, RESHARD: 0, REDUCE: terms.reduce, STEP: terms.step}
        return {F: terms.forward, BW: terms.full, B: terms.backward, W: terms.weight, **own}[kind]

    paired = sum(
        number * (ticks(F, forward) + ticks(BW, backward) - model.saved_by_block(forward, backward))
        for (forward, backward), number in blocks
    )
    model.cp.add(value >= lags + paired + sum(number * ticks(*pass_type) for pass_type, number in passes))


def add_memory(model: PartitionModel, schedule: Schedule) -> None:
    """Add rows that no device exceeds its capacity at any moment of its order in `schedule`.

    Without capacities none is added.
    """
    for device, room in enumerate(model.capacity):
        own = {p.stage // len(model.pieces) for p in schedule.passes_on(device)}
        static = sum(model.terms[stage % model.stages].memory for stage in own)
        for taken in activation_levels(model, schedule, device):
            model.cp.add(static + taken <= room)


def activation_levels(model: PartitionModel, schedule: Schedule, device: DeviceId) -> list[Linear]:
    """Return expressions of a device's activation memory, one for each moment at which it may be the largest.

    They are in steps of the partition model.
    """
    return [
        sum(number * _amount(model, state) for state, number in counts.items()) for counts in fullest(schedule, device)
    ]


# State of a micro-batch on a stage: F if it waits for its backward, W if it waits only for its W.
State = tuple[PassKind, StageId]


def _amount(model: PartitionModel, state: State) -> Linear:
    terms = model.of_stage(state[1])
    return terms.activation if state[0] is F else terms.memory_until_weight


def fullest(schedule: Schedule, device: DeviceId) -> list[Counter[State]]:
    """Return by state the number of micro-batches, for each moment of a device's order that may use the most memory.

    A state is (F, stage) before the backward and (W, stage) between B and W. A moment is left out if another one has as
    many micro-batches or more in every state. Those with the most micro-batches in all are first.
    """
    now: Counter[State] = Counter()
    seen: dict[tuple[tuple[State, int], ...], Counter[State]] = {}
    for p in schedule.passes_on(device):
        if p.kind is F:
            now[F, p.stage] += 1
        elif p.kind is W:
            now[W, p.stage] -= 1
        else:
            now[F, p.stage] -= 1
            now[W, p.stage] += p.kind is B
        if p.kind in (F, B):  # a B may take memory as it starts
            seen[tuple(sorted(now.items()))] = +now
    found: list[Counter[State]] = []
    for moment in sorted(seen.values(), key=lambda counts: -counts.total()):
        if not any(moment <= other for other in found):
            found.append(moment)
    return found
