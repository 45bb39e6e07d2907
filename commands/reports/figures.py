"""The table of one schedule's figures for `simulate` and `validate`: times, idle time, memory, fit and gap."""

from __future__ import annotations

from collections.abc import Iterator

from commands.shared.output import WHY_IDLE, idle_lines, memory_range, percent, times_shown
from commands.shared.output import time as time_text
from commands.shared.tables import Column, table
from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Objective
from pipesched.results.gap import gap
from pipesched.schedule.metrics import BUBBLE, IDLE, Metrics
from pipesched.schedule.stream_use import stream_use
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.idle_causes import idle_times


def show(title: str, timeline: Timeline, metrics: Metrics, fits: bool, lower_bound: Value | None) -> None:
    """Print the table of a schedule's figures, under `title`, and the causes of idle time.

    Figures are times of the objectives, idle times and bubble rates, peak memory, use of streams, the lower bound, and
    the gap to it; those not known are left out. `lower_bound` is in ticks, None where none is known. If the schedule
    does not fit the memory (`fits`), a dash replaces the gap.
    """
    problem = timeline.problem
    value = known(metrics, problem.objective)
    rows = [(time.name, time_text(problem, known(metrics, time))) for time in times_shown(problem)]
    period, idle = problem.objective.repeats, idle_times(timeline).shares()
    ends = [time for time in times_shown(problem) if time.repeats == period]
    rows += [(f"{IDLE}, of {time.name}", percent(metrics.idle(time))) for time in ends]
    rows += [(f"{BUBBLE}, of {time.name}", percent(metrics.bubble(time))) for time in ends]
    rows += [
        (f"peak memory ({problem.memory_unit})", memory_range(metrics)),
        *_streams(timeline),
        ("fits the memory", "yes" if fits else "no"),
        (f"lower bound ({problem.objective.name})", time_text(problem, lower_bound)),
        # A schedule that breaks the memory cap may lie below the bound of those that keep it.
        (f"gap to bound (of {problem.objective.name})", percent(share_open(value, lower_bound)) if fits else "–"),
    ]
    table(title, [Column("figure"), Column("value", True)], [row for row in rows if row[1]])
    if len(problem.streams) > 1:
        print("exposed: time in which a stream works and the device computes nothing; least to most over the devices")
    if idle:
        print(f"{WHY_IDLE}:")
    for line in idle_lines(idle):
        print(f"  {line}")


def _streams(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Yield a table row (name, text) for each stream but the first.

    The text is its exposed time, least to most over the devices.
    """
    problem, used = timeline.problem, list(stream_use(timeline)) if len(timeline.problem.streams) > 1 else []
    for stream in problem.streams[1:]:
        exposed = [use.exposed for use in used if use.of.stream == stream]
        least, most = (time_text(problem, ticks) for ticks in (min(exposed), max(exposed)))
        yield f"exposed ({stream})", most if least == most else f"{least} – {most}"


def share_open(value: Value | None, lower_bound: Value | None) -> float | None:
    """Return the gap between value and lower bound, as a share of the value; None where one is not known."""
    return None if value is None or lower_bound is None else gap(value, lower_bound)


def known(metrics: Metrics, time: Objective) -> Value | None:
    """Return the value of the objective `time` in ticks; None for a period that the timeline does not determine."""
    return metrics.period_ticks if time.repeats else metrics.value_ticks(time)
