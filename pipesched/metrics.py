"""What is read off a timeline: makespan, span, bubble rates, idle ratio, peak memory. Defined in docs/concepts.md."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.passes import Pass
from pipesched.problem import Objective
from pipesched.timeline import Timeline


@dataclass(frozen=True)
class Metrics:
    """Times in ticks, memory in the memory's integers; one entry a device in the tuples.

    `period` is None unless the timeline is a pattern unrolled: finitely many micro-batches have no steady state to
    read it from.
    """

    makespan: int
    span: int
    work: tuple[int, ...]
    peak_memory: tuple[int, ...]
    period: int | None = None
    microbatches: int = 0

    def value(self, objective: Objective) -> int:
        """The value of the objective; ValueError for the period of a timeline that is no unrolled pattern."""
        if objective is Objective.PERIOD:
            if self.period is None:
                raise ValueError("a finite timeline has no period")
            return self.period
        return self.makespan if objective is Objective.MAKESPAN else self.span

    def bubble(self, objective: Objective) -> float | None:
        """1 - busiest device's work / objective value (each period's, for a period); None without a period."""
        if objective is Objective.PERIOD and self.period is None:
            return None
        value = self.value(objective) * (self.microbatches if objective is Objective.PERIOD else 1)
        return 1 - max(self.work) / value if value else 0.0

    @property
    def bubbles(self) -> dict[str, float]:
        """The bubble rates that the timeline has, by objective."""
        rates = {objective.value: self.bubble(objective) for objective in Objective}
        return {name: rate for name, rate in rates.items() if rate is not None}

    @property
    def idle_ratio(self) -> float:
        """1 - total work / (devices x makespan)."""
        return 1 - sum(self.work) / (len(self.work) * self.makespan) if self.makespan else 0.0


def measure(timeline: Timeline) -> Metrics:
    """Read everything off a timeline."""
    devices = range(timeline.problem.devices)
    reach = [_reach(timeline, device) for device in devices]
    return Metrics(
        makespan=max(end for _, end in reach),
        span=max(end - start for start, end in reach),
        work=tuple(sum(end - start for start, end in timeline.busy(device)) for device in devices),
        peak_memory=tuple(max(level for _, level in memory_steps(timeline, device)) for device in devices),
        microbatches=timeline.problem.microbatches,
    )


def _reach(timeline: Timeline, device: int) -> tuple[int, int]:
    """The start of a device's first pass and the end of its last; (0, 0) for a device with none."""
    order = list(timeline.schedule.passes_on(device))
    return min(map(timeline.start, order), default=0), max(map(timeline.end, order), default=0)


def memory_steps(timeline: Timeline, device: int) -> list[tuple[int, int]]:
    """The memory a device holds as steps (tick, level from then on), first (0, 0).

    Where changes fall on the same tick they count in the order in which the device runs the passes, as a runtime
    would see them: what ends before a pass is given back before that pass takes its own.
    """
    changes: list[tuple[int, int, int, int]] = []
    order: list[Pass] = list(timeline.schedule.passes_on(device))
    for position, p in enumerate(order):
        at_start, at_end = timeline.problem.memory_change(p)
        changes.append((timeline.start(p), position, 0, at_start))
        changes.append((timeline.end(p), position, 1, at_end))
    steps, level = [(0, 0)], 0
    for tick, _, _, change in sorted(changes):
        if change:
            level += change
            steps.append((tick, level))
    return steps
