"""The cell of the atlas (docs/atlas.md) nearest to a problem, and its known results."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import NamedTuple

from commands.shared.output import percent
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import interleaved, linear, v_shape
from pipesched.problem.problem import Problem
from pipesched.problem.view import PipelineView

TABLE = Path(__file__).with_name("atlas.csv")
COLUMNS = (
    "devices", "length", "memory", "times", "transfer", "schedule", "placement", "published", "placements", "value",
    "lower_bound",
)  # fmt: skip
# Times of the backward and of its part for the weights, as shares of the forward, by the name of a ratio; None: the
# backward does not split.
_RATIOS = {"1:1:1": (1.0, 1.0), "2:2:1": (1.0, 0.5), "1:2": (2.0, None)}


@dataclass(frozen=True)
class Nearness:
    """Largest differences between a problem and a cell that is named for it: at most half a step between cells.

    `stage` is relative to the mean over stages; `time` (of B and W) and `transfer` are shares of F; `octaves` is the
    log2 of the ratio of devices, of micro-batches a device, and of memory.
    """

    stage: float = 0.1  # deviation of a stage's time or activation from the mean
    time: float = 0.25  # difference of B or W, as a share of F
    transfer: float = 0.1  # difference, as a share of F
    octaves: float = 0.6  # log2 of the ratio of devices, micro-batches a device and memory


_NEAR = Nearness()


class Cell(NamedTuple):
    """A cell of the atlas; times are in twentieths of a device's forward (F of all its layers).

    `devices` is the number of devices, `length` that of micro-batches for each device, `memory` a share of 1F1B's peak,
    `times` a ratio of F, B and W or of F and BW, `transfer` a share of F. `schedule`, `placement` and `published` are
    the name, placement and time of the best published schedule that fits (None if none does); `value` is the time of
    the best order found, on `placements`, and no order on them is faster than `lower_bound`.
    """

    devices: int
    length: int
    memory: float
    times: str
    transfer: float
    schedule: str | None
    placement: str | None
    published: int | None
    placements: str
    value: int
    lower_bound: int

    def __str__(self) -> str:
        where = f"{self.devices} devices, {self.length} micro-batches for each, {self.memory:g} times 1F1B's memory"
        kinds = "F:B:W" if self.times.count(":") > 1 else "F:BW"
        times = f"{kinds} = {self.times}, a transfer of {self.transfer:g} F"
        return f"in the nearest case of the atlas (docs/atlas.md: {where}, {times}) {self._best()}"

    def _best(self) -> str:
        on = self.placements.replace("/", " and ")
        if self.published is None or self.schedule is None:
            return f"no published schedule fits; the best order is on {on}"
        best = f"{self.schedule} on {self.placement} is the best published schedule"
        least, most = (self.published / own - 1 for own in (self.value, self.lower_bound))
        if not most:
            return f"{best}, and optimal"
        if least == most:
            return f"{best}, {percent(least)} above the optimum ({on})"
        return f"{best}, {percent(least)} to {percent(most)} above the optimum"


class _Measures(NamedTuple):
    """A problem in the units of the atlas, to find its nearest cell.

    `devices` is the number of devices, `length` that of micro-batches each, `memory` a share of 1F1B's peak (None:
    unlimited), `backward`, `weight` and `transfer` shares of F; `weight` is None where backwards do not split.
    """

    devices: int
    length: float
    memory: float | None
    backward: float
    weight: float | None
    transfer: float


def nearest_cell(problem: Problem) -> Cell | None:
    """Return the cell nearest to a problem of nearly equal stages on a placement of the atlas.

    None for any other problem, an objective other than the makespan, and where no cell is near enough.
    """
    own = _measures(problem)
    if own is None:
        return None
    near = [(distance, cell) for cell in cells() if (distance := _distance(own, cell)) is not None]
    return min(near, key=lambda each: each[0], default=(None, None))[1]


@cache
def cells() -> tuple[Cell, ...]:
    """Return all cells of the packaged table for which an order is known."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return tuple(_cell(entry) for entry in csv.DictReader(stream) if entry["value"])


def _cell(entry: dict[str, str]) -> Cell:
    published = int(entry["published"]) if entry["published"] else None
    return Cell(
        int(entry["devices"]), int(entry["length"]), float(entry["memory"]), entry["times"], float(entry["transfer"]),
        entry["schedule"] or None, entry["placement"] or None, published, entry["placements"], int(entry["value"]),
        int(entry["lower_bound"]),
    )  # fmt: skip


def _measures(problem: Problem) -> _Measures | None:
    """Return a problem in the units of the atlas; None if the atlas lacks its objective, placement or features.

    Also None if its stages differ too much.
    """
    view, devices = problem.view, problem.devices
    if view is None or not problem.objective.from_zero or len(problem.placement.chains) != 1:
        return None
    known = (linear(devices), v_shape(devices), *((interleaved(devices, 2),) if devices > 1 else ()))
    if problem.placement.stage_device not in {one.stage_device for one in known}:
        return None
    if (
        view.blocks
        or problem.chain_arcs.arcs
        or problem.chain_arcs.modules
        or any(map(view.saved_by_fusing, view.stages))
    ):
        return None
    kinds = (F, B, W) if view.splits else (F, BW)
    totals = [sum(view.ticks[kind, stage] for kind in kinds) for stage in view.stages]
    if not _alike(totals) or not _alike(view.memory_in_flight) or not all(view.memory_in_flight):
        return None
    forward, *others = (sum(view.ticks[kind, stage] for stage in view.stages) / devices for kind in kinds)
    if not forward:
        return None
    place, chain = view.placement.stage_device, view.placement.chains[0]
    lags = [view.arrivals[after] for before, after in pairwise(chain) if place[before] != place[after]]
    return _Measures(
        devices,
        problem.microbatches / devices,
        _memory(view),
        others[0] / forward,
        others[1] / forward if view.splits else None,
        sum(lags) / len(lags) / forward if lags else 0.0,
    )


def _memory(view: PipelineView) -> float | None:
    """Return the least memory of a device as a share of 1F1B's peak: one micro-batch's activations on all stages.

    None if no device has a limit.
    """
    whole = sum(view.memory_in_flight) / view.devices
    rooms = [room for room in view.room if room is not None]
    return min(rooms) / (whole * view.devices) if rooms else None


def _alike(numbers: Iterable[int]) -> bool:
    numbers = [*numbers]
    mean = sum(numbers) / len(numbers)
    return all(abs(number - mean) <= _NEAR.stage * mean for number in numbers)


def _distance(measures: _Measures, cell: Cell) -> float | None:
    """Return the sum of differences, each relative to the largest allowed.

    None where one of them is larger, or only one of the two splits backwards.
    """
    backward, weight = _RATIOS[cell.times]
    if (measures.weight is None) != (weight is None) or (measures.memory is not None and measures.memory <= 0):
        return None
    # More memory than the most of the atlas is as good as that.
    most = max(one.memory for one in cells())
    memory = most if measures.memory is None else min(measures.memory, most)
    parts = [
        abs(log2(measures.devices / cell.devices)) / _NEAR.octaves,
        abs(log2(measures.length / cell.length)) / _NEAR.octaves,
        abs(log2(memory / cell.memory)) / _NEAR.octaves,
        abs(measures.backward - backward) / _NEAR.time,
        abs((measures.weight or 0) - (weight or 0)) / _NEAR.time,
        abs(measures.transfer - cell.transfer) / _NEAR.transfer,
    ]
    return sum(parts) if max(parts) <= 1 else None
