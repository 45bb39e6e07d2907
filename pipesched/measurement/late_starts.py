"""Explanation of a measured step that took longer than predicted: cost of each assumption, and late starts of passes.

A pass starts late because the pass it waited for last ended late, or because it began later than that allows. To follow
these reasons back from pass to pass splits every late start, and the whole step's difference from the prediction, into
causes that add up exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median_low
from typing import NamedTuple

from pipesched.measurement.calibration import seconds_per_unit
from pipesched.measurement.comparison import executed
from pipesched.measurement.pass_causes import OF_DURATIONS, Cause, Split, longer_by_cause
from pipesched.measurement.step_arcs import Arc, StepArcs, step_arcs
from pipesched.measurement.trace import Measured
from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId

_NAMED = 5  # delays of single passes that are listed
_NEGLIGIBLE = 1e-9  # seconds: what is left of sums of floating-point numbers
ASSUMPTIONS = (*OF_DURATIONS, Cause.TRANSFERS, Cause.PAUSES)


class Delay(NamedTuple):
    """A delay of the step by pass `of` of the critical path and one cause, in seconds, above 0."""

    of: Pass
    cause: Cause
    seconds: float


@dataclass(frozen=True)
class LateStart:
    """The start of a pass: predicted, measured, and the causes that add up to the difference, in seconds.

    Starts count from the step's first start on any device; `causes` may be negative.
    """

    of: Pass
    device: DeviceId
    predicted: float
    measured: float
    causes: Split

    @property
    def late(self) -> float:
        return self.measured - self.predicted


@dataclass(frozen=True)
class LateStarts:
    """The late starts of the step with the median makespan (of two, the lower one), in seconds.

    `step` is the step's number, from 0, `predicted` and `measured` are its makespans. `causes` add up to `measured -
    predicted`; they lie along the chain of passes that the last pass waited for. `largest` are up to five delays along
    it, the largest first. `alone[c]` is the predicted makespan if only assumption c, one of `ASSUMPTIONS`, is replaced
    by what was measured. `passes` has each pass of the step, after its predecessors.
    """

    step: int
    predicted: float
    measured: float
    causes: Split
    alone: Split
    largest: tuple[Delay, ...]
    passes: tuple[LateStart, ...]

    @property
    def costliest(self) -> Cause:
        """The assumption whose replacement alone changes the prediction most."""
        return max(ASSUMPTIONS, key=lambda cause: abs(self.alone[cause] - self.predicted))


def late_starts(measured: Measured, problem: Problem) -> LateStarts | None:
    """Compare the median step with the prediction; None if a pass has several tasks.

    The passes of the trace must be those of the problem, which is not checked here. `BadInput` if the seconds of its
    time unit are not known.
    """
    makespan = median_low(measured.makespans)
    number = measured.makespans.index(makespan)
    tick = float(seconds_per_unit(problem, measured) * problem.tick)
    steps = [step_arcs(problem, executed(measured, at), step, tick) for at, step in enumerate(measured.steps)]
    arcs = steps[number]
    if arcs is None:
        return None
    planned = {p: problem.duration(p) * tick for p in arcs.ran}
    longer = longer_by_cause(measured.seconds, planned, [one for one in steps if one is not None], arcs)
    starts, ends = arcs.replay(planned.__getitem__, lambda arc: arc.planned)
    causes = _causes(arcs, starts, planned, longer)
    last = max(arcs.ran.values(), key=lambda one: one.end).of
    predicted = max(ends.values())
    whole = dict(causes[last])
    for cause in OF_DURATIONS:
        whole[cause] += longer[last][cause]
    whole[Cause.OTHER_PATH] += ends[last] - predicted
    passes = tuple(LateStart(p, problem.device(p), starts[p], one.start, causes[p]) for p, one in arcs.ran.items())
    return LateStarts(
        number, predicted, makespan, whole, _alone(arcs, planned, longer), _largest(arcs, last, longer), passes
    )


def _largest(arcs: StepArcs, last: Pass, longer: Mapping[Pass, Split]) -> tuple[Delay, ...]:
    """Return the largest single delays on the critical path back from the pass that ended last.

    They are at most `_NAMED`, the largest first; negligible ones are left out.
    """
    found: list[Delay] = []
    p = last
    while True:
        found += [Delay(p, cause, longer[p][cause]) for cause in OF_DURATIONS]
        if p in arcs.opening:
            found.append(Delay(p, Cause.PAUSES, arcs.opening[p]))
            break
        arc = arcs.binding[p]
        found.append(Delay(p, Cause.TRANSFERS if arc.message else Cause.PAUSES, arc.measured - arc.planned))
        p = arc.before
    positive = [one for one in found if one.seconds > _NEGLIGIBLE]
    return tuple(sorted(positive, key=lambda one: -one.seconds)[:_NAMED])


def _alone(arcs: StepArcs, planned: Mapping[Pass, float], longer: Mapping[Pass, Split]) -> Split:
    """Return by cause the makespan in seconds with that assumption alone replaced by what was measured."""

    def makespan(cause: Cause) -> float:
        def lag(arc: Arc) -> float:
            replaced = cause is (Cause.TRANSFERS if arc.message else Cause.PAUSES)
            return arc.measured if replaced else arc.planned

        _, ends = arcs.replay(lambda p: planned[p] + longer[p].get(cause, 0.0), lag, cause is Cause.PAUSES)
        return max(ends.values())

    return {cause: makespan(cause) for cause in ASSUMPTIONS}


def _causes(
    arcs: StepArcs, starts: Mapping[Pass, float], planned: Mapping[Pass, float], longer: Mapping[Pass, Split]
) -> dict[Pass, dict[Cause, float]]:
    """Return by pass the seconds of its late start by cause.

    They are those of the pass it waited for last, what made that pass longer (`longer`), the wait itself, and,
    negative, how long the prediction waited for another pass instead. `starts` and `planned` are the predicted starts
    and durations in seconds. A pass that waits for none is late by pauses.
    """
    found: dict[Pass, dict[Cause, float]] = {}
    for p in arcs.ran:
        if p in arcs.opening:
            found[p] = dict.fromkeys(Cause, 0.0) | {Cause.PAUSES: arcs.opening[p]}
            continue
        arc = arcs.binding[p]
        one = dict(found[arc.before])
        for cause in OF_DURATIONS:
            one[cause] += longer[arc.before][cause]
        one[Cause.TRANSFERS if arc.message else Cause.PAUSES] += arc.measured - arc.planned
        # The prediction may have waited for another pass, which ended later: so much of the delay does not show.
        one[Cause.OTHER_PATH] += starts[arc.before] + planned[arc.before] + arc.planned - starts[p]
        found[p] = one
    return found
