"""The part of a timeline that a picture shows: between two times, or one period of the steady state."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from statistics import mean

from pipesched.errors import BadInput
from pipesched.problem.passes import F
from pipesched.schedule.drawing.boxes import makespan
from pipesched.schedule.timeline import Timeline
from plots.drawing.stream_boxes import phases

# From and to, in ticks.
Window = tuple[float, float]

PERIOD = "period"


@dataclass(frozen=True)
class CutParams:
    """Limits on cutting the steady state out of a long picture, as shares.

    `shown_steady`: the steady state shown at least, as a share of warm-up and cool-down together. `most_shown`: the
    most that a picture with a cut shows of all time; a cut that leaves more gains too little.
    """

    shown_steady: float = 0.15
    most_shown: float = 0.8


_PARAMS = CutParams()


def window_of(timeline: Timeline, text: str) -> Window:
    """Return the window, in ticks, of a text `period`, or `FROM:TO` in the file's unit.

    Without FROM it begins at 0, without TO it lasts to the end of the schedule; a later TO becomes that end. Raises
    `BadInput` for any other text, a window that begins after the schedule, and `period` without steady state.
    """
    if text == PERIOD:
        return one_period(timeline)
    problem, last = timeline.problem, makespan(timeline)
    since, colon, until = text.partition(":")
    try:
        window = float(since or 0), float(until) if until else problem.in_units(last)
    except ValueError:
        window = 0.0, 0.0
    if not colon or not 0 <= window[0] < window[1]:
        raise BadInput(f"--zoom: found {text!r}; allowed: {PERIOD}, or two times FROM:TO, such as 100:250")
    tick = float(problem.tick)
    if window[0] / tick >= last:
        end = f"{problem.in_units(last):g} {problem.time_unit}".strip()
        raise BadInput(f"--zoom: found {text!r}, which begins when the schedule has ended; allowed: times before {end}")
    return window[0] / tick, min(window[1] / tick, float(last))


def steady_cut(timeline: Timeline, most: float) -> Window | None:
    """Return the window of the steady state to leave out so that a picture has at most `most` ticks.

    None if none helps. Every device's warm-up and cool-down stay, and some of the steady state on either side. If these
    alone take more than `most`, the picture does too. It is None without steady state, and if the cut would leave out
    too little.
    """
    last = float(makespan(timeline))
    found = [own for device in range(timeline.problem.devices) if (own := phases(timeline, device)) is not None]
    if not found:
        return None
    before, after = max(own.steady for own in found), last - min(own.cool_down for own in found)
    stays = max(most, (before + after) * (1 + _PARAMS.shown_steady))
    part = (stays - before - after) / 2
    if part < 0 or stays > _PARAMS.most_shown * last:
        return None
    return float(floor(before + part)), float(ceil(last - after - part))


def readable_part(timeline: Timeline, share: float) -> Window:
    """Return a window (ticks) of this share of all time, at least a period long, around one period of the steady state.

    Without steady state it is around the middle of all time. It lies within the time of the schedule.
    """
    last = float(makespan(timeline))
    try:
        since, until = one_period(timeline)
    except BadInput:
        since = until = last / 2
    long = min(last, max(share * last, until - since))
    begin = min(max(0.0, (since + until - long) / 2), last - long)
    return begin, begin + long


def one_period(timeline: Timeline) -> Window:
    """Return the window (ticks) between two micro-batches in the middle of the first steady state of a device.

    Its length is the mean over that device's forwards in the steady state. `BadInput` if no device has two of them.
    """
    for device in range(timeline.problem.devices):
        phases_of_device = phases(timeline, device)
        if phases_of_device is None:
            continue
        forwards = [p for p in timeline.schedule.passes_on(device) if p.kind is F]
        starts = sorted(
            start
            for p in forwards
            if phases_of_device.steady <= (start := timeline.start(p)) < phases_of_device.cool_down
        )
        if len(starts) > 1:
            chunks = len({p.stage for p in forwards})
            length = chunks * mean(after - before for before, after in pairwise(starts))
            middle = (phases_of_device.steady + phases_of_device.cool_down - length) / 2
            since = min(starts, key=lambda start: abs(start - middle))
            return float(since), since + float(length)
    raise BadInput("--zoom period: found no steady state; allowed: two times FROM:TO, such as 100:250")
