"""Published figures of an instance as values in its time unit, each as exact as it is printed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from benchmarks.library.instance import Instance, PublishedFigure
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, DoesNotApply
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate

# Kinds whose figures are those of schedules of just this problem, or of the formula for them.
COMPARABLE = ("computed", "formula", "simulated")


@dataclass(frozen=True)
class Figure:
    """A published figure as values `low` to `high` in the problem's unit: all that its printed digits may stand for."""

    published: PublishedFigure
    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        one = self.published
        if one.bubble is not None:
            return f"bubble {one.bubble} ({one.by})"
        number = one.value if one.value is not None else float(self.low)
        return f"{number:.10g} ({one.by}{_KINDS_IN_WORDS.get(one.kind, '')})"


_KINDS_IN_WORDS = {"formula": ", closed form", "bound": ", lower bound"} | {
    kind: f", {kind}" for kind in ("simulated", "extrapolated", "measured")
}


def figures(instance: Instance) -> list[Figure]:
    """Every published figure; `BadInput` where a published schedule takes another value than the one printed."""
    return [_figure(instance, one) for one in instance.card.published]


def _figure(instance: Instance, published: PublishedFigure) -> Figure:
    if published.value is not None:
        half = _half_of_last_digit(published.value)
        found = Figure(published, Fraction(published.value) - half, Fraction(published.value) + half)
    elif published.bubble is not None:
        problem = _plain(instance)
        work, half = _busiest(problem), _half_of_last_digit(published.bubble)
        rate = Fraction(published.bubble)
        found = Figure(published, work / (1 - rate + half), work / (1 - rate - half))
    else:
        found = Figure(published, *[_simulated(instance, published)] * 2)
    if published.schedule is not None and not found.low <= (value := _simulated(instance, published)) <= found.high:
        raise BadInput(f"{instance.name}: {published.schedule} takes {float(value):.10g} here, not {found}")
    return found


def published_timelines(instance: Instance) -> list[Timeline]:
    """The published orders that have a name here, as early as possible; `BadInput` as `figures`."""
    return [_timeline(instance, one.schedule) for one in instance.card.published if one.schedule is not None]


def _simulated(instance: Instance, one: PublishedFigure) -> Fraction:
    assert one.schedule is not None
    timeline = _timeline(instance, one.schedule)
    return measure(timeline).value_ticks(timeline.problem.objective) * timeline.problem.tick


def _timeline(instance: Instance, schedule: str) -> Timeline:
    """A published order of the instance; `BadInput` where it does not apply or breaks a rule."""
    problem = _plain(instance)
    try:
        timeline = simulate(problem, HEURISTICS[schedule].order(problem))
    except DoesNotApply as reason:
        raise BadInput(f"{instance.name}: {schedule} does not apply: {reason}") from None
    if broken := validate(timeline):
        raise BadInput(f"{instance.name}: {schedule}: {broken[0].text}")
    return timeline


def _busiest(problem: Problem) -> Fraction:
    """The work of the busiest device."""
    stages = problem.stages
    loads = (
        sum(
            (stages[s].forward + stages[s].backward + (stages[s].weight or 0)) * len(problem.microbatches_of[s])
            for s in stages_of_device
        )
        for stages_of_device in problem.placement.stages_of
    )
    return max(loads) * problem.tick


def _plain(instance: Instance) -> Problem:
    if not isinstance(instance.problem, Problem) or instance.problem.objective.repeats:
        raise BadInput(f"{instance.name}: found a bubble or a schedule; allowed: in problems with a makespan or span")
    return instance.problem


def _half_of_last_digit(number: int | Decimal) -> Fraction:
    """Half of the last printed digit; 0 for a whole number, which is exact."""
    if isinstance(number, int):
        return Fraction(0)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return Fraction(10) ** exponent / 2 if exponent < 0 else Fraction(0)
