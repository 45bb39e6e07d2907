"""Additional time of each pass of a step, divided by cause: from the coarsest median to the pass itself."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import StrEnum
from statistics import median

from pipesched.measurement.step_arcs import StepArcs
from pipesched.problem.passes import Pass, PassKind

_SAMPLES = 3  # passes beside a message, and as many without one: fewer tell nothing of contention


class Cause(StrEnum):
    """An effect that the model leaves out, to which additional time is attributed; the value is its key in JSON.

    Of durations: a stage's usual time differs from the predicted one (`STAGE_TIMES`), messages slow passes down
    (`CONTENTION`), a micro-batch's usual time differs (`MICROBATCHES`), or only this step's does (`JITTER`). Of starts:
    `TRANSFERS` took other times, `PAUSES` were made between passes of a device, or the prediction had waited for
    another pass (`OTHER_PATH`).
    """

    STAGE_TIMES = "stage_times"
    CONTENTION = "contention"
    MICROBATCHES = "microbatches"
    JITTER = "jitter"
    TRANSFERS = "transfers"
    PAUSES = "pauses"
    OTHER_PATH = "other_path"


# Seconds by cause.
Split = Mapping[Cause, float]
OF_DURATIONS = (Cause.STAGE_TIMES, Cause.CONTENTION, Cause.MICROBATCHES, Cause.JITTER)


def longer_by_cause(
    usual: Mapping[Pass, float], planned: Mapping[Pass, float], steps: Sequence[StepArcs], step_explained: StepArcs
) -> dict[Pass, dict[Cause, float]]:
    """Return the additional time of each pass of `step_explained`, one of the `steps`, by cause, in seconds.

    The causes, in the order of `OF_DURATIONS`, are the differences between neighbours in this sequence: (1) the pass's
    predicted time (`planned`); (2) the median of all passes of its stage and kind in the `steps`; (3) the median of
    those among them that ran during a message of their device, or of those that did not, whichever the pass did; (4)
    its own median over the steps (`usual`); (5) its time in this step. If there are less than three passes of either
    sort, (3) is (2). The sum is positive if the pass took longer than predicted.
    """
    samples: dict[tuple[PassKind, int, bool], list[float]] = {}
    during_message = dict.fromkeys(step_explained.ran, False)
    for step in steps:
        found = _during_messages(step)
        during_message = found if step is step_explained else during_message
        for p, one in step.ran.items():
            samples.setdefault((p.kind, p.stage, found[p]), []).append(one.seconds)
    causes = {}
    for p, one in step_explained.ran.items():
        alone, busy = (samples.get((p.kind, p.stage, which), []) for which in (False, True))
        stage = median(alone + busy)
        enough = min(len(alone), len(busy)) >= _SAMPLES
        like = median(busy if during_message[p] else alone) if enough else stage
        causes[p] = {
            Cause.STAGE_TIMES: stage - planned[p],
            Cause.CONTENTION: like - stage,
            Cause.MICROBATCHES: usual[p] - like,
            Cause.JITTER: one.seconds - usual[p],
        }
    return causes


def _during_messages(step: StepArcs) -> dict[Pass, bool]:
    """Return by pass True if some message to or from its device was in transfer for half of the pass or longer."""
    in_transfer: dict[int, list[tuple[float, float]]] = {}
    for p, arcs in step.arcs.items():
        for arc in (arc for arc in arcs if arc.message):
            sent = step.ran[arc.before].end
            for device in (step.device[p], step.device[arc.before]):
                in_transfer.setdefault(device, []).append((sent, sent + arc.measured))
    union = {device: _union(intervals) for device, intervals in in_transfer.items()}
    return {
        p: 2 * _shared(union.get(step.device[p], []), one.start, one.end) >= one.seconds > 0
        for p, one in step.ran.items()
    }


def _union(intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the union of (start, end) intervals as disjoint ones, ascending; empty intervals are left out."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def _shared(union: list[tuple[float, float]], start: float, end: float) -> float:
    """Return the length of the intersection of a union of intervals with [start, end].

    The intervals of `union` are (start, end), disjoint and ascending; the result is in their unit.
    """
    at = max(0, bisect_right(union, (start, float("inf"))) - 1)
    total = 0.0
    while at < len(union) and union[at][0] < end:
        total += max(0.0, min(end, union[at][1]) - max(start, union[at][0]))
        at += 1
    return total
