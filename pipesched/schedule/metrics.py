"""Metrics of a timeline: makespan, span, idle time, bubble rates, peak memory. Defined in docs/concepts.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipesched.arguments import A_TIMELINE, refuse_other
from pipesched.deadline import asking
from pipesched.problem.objective import objectives
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.objectives.span import SPAN
from pipesched.problem.passes import F, PassKind
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, ReservoirId, StageId, Ticks
from pipesched.schedule.memory_elsewhere import changes_elsewhere
from pipesched.schedule.microbatch_factors import by_microbatch
from pipesched.schedule.pass_table import Whole, whole
from pipesched.schedule.timeline import Timeline, blocks

IDLE, BUBBLE = "idle (mean over devices)", "bubble rate (busiest device)"  # as tables and pictures name them


@dataclass(frozen=True)
class Metrics:
    """The metrics of a timeline, in the file's units; fields and properties ending in `_ticks` in ticks of `problem`.

    Tuples have one entry for each device; `work_ticks` is the work of its first stream. `peak_quanta` is the peak
    memory of passes in steps, without static memory. The period is None unless the timeline is an unrolled pattern,
    since finitely many micro-batches have no steady state.
    """

    problem: Problem = field(repr=False, compare=False)
    makespan_ticks: Ticks
    span_ticks: Ticks
    work_ticks: tuple[Ticks, ...]
    peak_quanta: tuple[MemorySteps, ...]
    period_ticks: Ticks | None = None

    @property
    def makespan(self) -> float:
        return self.problem.in_units(self.makespan_ticks)

    @property
    def span(self) -> float:
        return self.problem.in_units(self.span_ticks)

    @property
    def period(self) -> float | None:
        return None if self.period_ticks is None else self.problem.in_units(self.period_ticks)

    @property
    def work(self) -> list[float]:
        return list(map(self.problem.in_units, self.work_ticks))

    @property
    def peak_memory(self) -> list[float]:
        """The peak memory of each device in the file's unit, static memory included."""
        parts = zip(self.peak_quanta, self.problem.static, strict=True)
        return [float(sum(both) * self.problem.resolution) for both in parts]

    def value_ticks(self, objective: Objective) -> Ticks:
        """Return the objective's value in ticks (of an iteration it is the makespan).

        ValueError for the period of a timeline that is no unrolled pattern.
        """
        if objective.repeats:
            if self.period_ticks is None:
                raise ValueError("a finite timeline has no period")
            return self.period_ticks
        return self.span_ticks if objective.by_device else self.makespan_ticks

    def idle(self, objective: Objective) -> float | None:
        """Return the share of idle time, mean over the devices: 1 - mean work / value; None for an unknown period.

        For a period the work is that of one micro-batch, the mean over all.
        """
        return self._idle(sum(self.work_ticks), len(self.work_ticks), objective)

    def bubble(self, objective: Objective) -> float | None:
        """Return the papers' bubble rate: 1 - busiest device's work / value; None for a period if it has none.

        For a period the work is that of one micro-batch, the mean over all.
        """
        return self._idle(max(self.work_ticks), 1, objective)

    @property
    def idles(self) -> dict[str, float]:
        """The idle times (mean over the devices), as shares of 1, by name of the objective: makespan, span and period.

        The period only for an unrolled pattern; an iteration is not among them.
        """
        return _known(self.idle)

    @property
    def bubbles(self) -> dict[str, float]:
        """The bubble rates (of the busiest device), as shares of 1, by name of objective: makespan, span and period.

        The period only for an unrolled pattern; an iteration is not among them.
        """
        return _known(self.bubble)

    @property
    def idle_ratio(self) -> float:
        """The idle ratio: 1 - total work / (devices x makespan)."""
        return self._idle(sum(self.work_ticks), len(self.work_ticks), MAKESPAN) or 0.0

    def _idle(self, work: Ticks, devices: int, objective: Objective) -> float | None:
        """Return the idle share 1 - work / (devices x value).

        The value of a period is multiplied by the micro-batches. None for a period that the timeline does not have; 0
        where the value is 0.
        """
        if objective.repeats and self.period_ticks is None:
            return None
        value = self.value_ticks(objective) * (self.problem.microbatches if objective.repeats else 1)
        return 1 - work / (devices * value) if value else 0.0


def _known(share: Callable[[Objective], float | None]) -> dict[str, float]:
    # An iteration is a makespan.
    shares = {one.name: share(one) for one in objectives() if one.passes is None}
    return {name: one for name, one in shares.items() if one is not None}


def measure(timeline: Timeline) -> Metrics:
    """Return the metrics of a timeline; they have no period. `BadInput` for an object that is no timeline."""
    refuse_other("measure", timeline, Timeline, A_TIMELINE)
    devices = range(timeline.problem.devices)
    reach = [device_reach(timeline, device) for device in asking(devices)]
    return Metrics(
        timeline.problem,
        makespan_ticks=MAKESPAN.value_of(reach),
        span_ticks=SPAN.value_of(reach),
        work_ticks=_work(timeline),
        peak_quanta=tuple(int(_memory(timeline, device)[1].max()) for device in asking(devices)),
    )


def device_reach(timeline: Timeline, device: DeviceId) -> tuple[Ticks, Ticks]:
    """Return the start of a device's first task and the end of its last, in ticks.

    (0, 0) for a device without tasks.
    """
    rows = timeline.schedule.columns.on(device)
    begin, end = (column[rows] for column in timeline.reach)
    own = [(int(begin.min()), int(end.max()))] if len(begin) else []
    own += [(one.start, one.end) for one in timeline.elsewhere.get(device, ())]
    return min((start for start, _ in own), default=0), max((end for _, end in own), default=0)


def _work(timeline: Timeline) -> tuple[Ticks, ...]:
    """Return the work of each device's first stream, in ticks."""
    ticks, first = work_of_rows(timeline), timeline.problem.streams[0]
    elsewhere = {
        device: sum(one.end - one.start for one in occupied if one.stream == first)
        for device, occupied in timeline.elsewhere.items()
    }
    return tuple(
        int(ticks[timeline.schedule.columns.on(device)].sum()) + elsewhere.get(device, 0)
        for device in range(timeline.problem.devices)
    )


def work_of_rows(timeline: Timeline) -> Whole:
    """Return the ticks of each pass, by its row in the schedule's columns, on the first stream of its device.

    The ticks of a block are those of its forward's row; its backward has 0.
    """
    problem, columns = timeline.problem, timeline.schedule.columns

    def alone(kind: PassKind, stage: StageId) -> Ticks:
        return sum(task.ticks for task in problem.tasks_of(kind, stage) if task.stream == problem.streams[0])

    rows = len(columns)
    block = blocks(problem, timeline.schedule)
    ticks = by_microbatch(problem, columns.each(alone, rows), columns.microbatch, rows)
    return np.where(block < 0, ticks, block * columns.each(lambda kind, _: kind is F, rows))


def _memory(timeline: Timeline, reservoir: ReservoirId) -> tuple[Whole, Whole]:
    """Return the ticks at which passes start or end, and the level of a memory from each on, as two arrays.

    They begin with 0 at time 0. Changes at one tick count in the order in which the device runs the passes, as in a
    runtime: memory of a pass that ends is freed before the next pass takes its own. With several streams ends at a tick
    are before starts, in any order of passes, and so where passes of other devices use its memory too.
    """
    columns = timeline.schedule.columns
    rows = columns.on(reservoir)

    change_of = timeline.problem.network.change

    def change(end: int) -> Whole:
        found = columns.each(lambda *pass_type: change_of[pass_type][end], 2 * len(columns), rows)
        found = by_microbatch(timeline.problem, found, columns.microbatch[rows], 2 * len(columns))
        return found - given_up(timeline)[rows] if end and timeline.problem.network.given_up else found

    # Start and end of each pass side by side: a stable sort leaves those of one tick in that order.
    begin, end = (column[rows] for column in timeline.times)
    ticks = np.stack((begin, end), axis=1).ravel()
    changes = np.stack((change(0), change(1)), axis=1).ravel()
    others = [(one.tick, one.amount, one.later) for one in changes_elsewhere(timeline, reservoir)]
    if others or len(timeline.problem.streams) > 1:
        later = np.stack((np.ones(len(begin), bool), begin == end), axis=1).ravel()
        more = zip(*others, strict=True) if others else ((), (), ())
        ticks, changes, later = (
            np.append(own, np.array(one, own.dtype)) for own, one in zip((ticks, changes, later), more, strict=True)
        )
        order = np.lexsort((later, ticks))
    else:
        order = np.argsort(ticks, kind="stable")
    levels = changes[order].cumsum()
    return _after_zero(ticks[order]), _after_zero(levels)


def _after_zero(numbers: NDArray[Any]) -> Whole:
    """Return the numbers with a 0 before them."""
    return np.concatenate((np.zeros(1, numbers.dtype), numbers))


def given_up(timeline: Timeline) -> Whole:
    """Return for each pass the memory, in steps, that it frees at its end if it is a forward that is recomputed later.

    It is 0 for every other pass. Passes are given by their rows in the schedule's columns.
    """
    columns, network = timeline.schedule.columns, timeline.problem.network
    found = whole([0] * len(columns))
    for (kind, stage), freed in network.given_up.items():
        again, forward = columns.rows(kind, stage), columns.rows(F, stage)
        found[forward[(again >= 0) & (forward >= 0)]] = freed
    return by_microbatch(timeline.problem, found, columns.microbatch, 2 * len(columns))


def memory_steps(timeline: Timeline, reservoir: ReservoirId) -> list[tuple[Ticks, MemorySteps]]:
    """Return the level of a memory over time, as a list of (tick, level from that tick on); the first entry is (0, 0).

    The level is in steps, without static memory. A tick at which the level changes several times has an entry for each
    change, so that the largest level is the peak.
    """
    ticks, levels = _memory(timeline, reservoir)
    changed = np.flatnonzero(np.diff(levels, prepend=1))
    return list(zip(ticks[changed].tolist(), levels[changed].tolist(), strict=True))
