"""Sensitivity analysis: the bottleneck, and the effect of changes of memory, links, passes or stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from threading import Event

from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Solution, Status
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.analysis.bottleneck import Bottleneck, bottleneck
from solver.analysis.perturbations import Perturbation, changes
from solver.analysis.time_budget import Budget
from solver.construction.timing import best_times
from solver.limits import Limits


@dataclass(frozen=True)
class BoundAndValue:
    """What is known of a problem, in the file's time unit: a bound proved, and the best value found (None: none)."""

    lower_bound: Fraction
    value: Fraction | None


@dataclass(frozen=True)
class Effect:
    """What a change does. `reason` says why the changed problem has no schedule at all, if it has none."""

    change: Perturbation
    outcome: BoundAndValue
    reason: str = ""


@dataclass(frozen=True)
class Explanation:
    """The answer to "why not better".

    `known` is what the solve brought; `again` what a search as short as each change's finds out about the problem as
    it is, None where time ran out before: it says how much of a difference is the search's own. `untried` are
    changes not tried before the time limit.
    """

    bottleneck: Bottleneck
    known: BoundAndValue
    again: BoundAndValue | None
    effects: tuple[Effect, ...] = ()
    untried: tuple[Perturbation, ...] = ()
    interrupted: bool = False

    @property
    def as_it_is(self) -> BoundAndValue:
        """All that is known of the problem as it is: what bounds a relaxed problem bounds this one too."""
        searched = [self.known, *([self.again] if self.again else [])]
        relaxed = [e.outcome.lower_bound for e in self.effects if e.change.relaxes]
        values = [outcome.value for outcome in searched if outcome.value is not None]
        return BoundAndValue(max([*(one.lower_bound for one in searched), *relaxed]), min(values, default=None))

    def gain(self, effect: Effect) -> tuple[Fraction, Fraction] | None:
        """Between what two numbers the best possible value falls by the change: proved; None if nothing is.

        The best possible value lies between bound and best found, before the change as after it.
        """
        before, after = self.as_it_is, effect.outcome
        if before.value is None or after.value is None:
            return None
        most = before.value - after.lower_bound
        least = before.lower_bound - after.value
        return (max(Fraction(0), least) if effect.change.relaxes else least), most

    def ranked(self) -> tuple[Effect, ...]:
        """The effects, what gains most first: by the fall proved, by the fall of the best found, by the most possible.

        Effects of which nothing is told, and those that leave no schedule, come last. Equal ones keep their order.
        """
        return tuple(sorted(self.effects, key=self._rank, reverse=True))

    def _rank(self, effect: Effect) -> tuple[bool, Fraction, Fraction, Fraction]:
        gain, before, after = self.gain(effect), self.as_it_is.value, effect.outcome.value
        if gain is None or before is None or after is None or not self.tells(effect):
            return False, Fraction(0), Fraction(0), Fraction(0)
        # A change that only may be for the worse ranks by what it may be for the better, behind what is certain.
        return True, max(gain[0], min(gain[1], Fraction(0))), before - after, gain[1]

    def tells(self, effect: Effect) -> bool:
        """Whether anything is known of the change that as short a search does not leave open without it."""
        gain, before, after = self.gain(effect), self.as_it_is, effect.outcome
        if gain is None or before.value is None or after.value is None:
            return False
        certain = gain[0] > 0 or gain[1] <= 0
        return certain or after.lower_bound < (self.again or self.known).lower_bound or after.value > before.value


# Called with how many of how many questions are answered, and the next one.
OnProgress = Callable[[int, int, str], None]


def explain(
    solution: Solution, limits: Limits | None = None, on_progress: OnProgress | None = None, stop: Event | None = None
) -> Explanation:
    """Read the binding off the certificates, then solve every changed problem in its share of the limits.

    ValueError if the solution has no schedule, or the objective is the period.
    """
    if solution.timeline is None:
        raise ValueError("without a schedule there is nothing to explain")
    if solution.problem.objective is Objective.PERIOD:
        raise ValueError("makespan and span are explained")
    problem, tell, halt = solution.problem, on_progress or (lambda *_: None), stop or Event()
    it = bottleneck(problem, solution.certificate)
    asked = changes(problem, it.device, it.busiest)
    budget = Budget(limits or Limits(), len(asked) + 1, halt)
    tell(0, len(asked) + 1, "as it is")
    again = None if budget.over() else _outcome(budget.ask(problem), solution.timeline)
    known = _of(problem, solution.lower_bound_ticks, solution.value_ticks)
    effects: list[Effect] = []
    for number, change in enumerate(asked):
        if budget.over():
            break
        tell(number + 1, len(asked) + 1, change.text)
        found = budget.ask(change.problem)
        effects.append(Effect(change, _outcome(found, solution.timeline), found.reason))
    return Explanation(it, known, again, tuple(effects), tuple(asked[len(effects) :]), halt.is_set())


def _outcome(found: Solution, known: Timeline) -> BoundAndValue:
    """What a solve found, or the order known before where that is still valid and better."""
    if found.status is Status.INFEASIBLE:
        return _of(found.problem, found.lower_bound_ticks, None)
    values = [found.value_ticks, _value_of_order(found.problem, known)]
    return _of(found.problem, found.lower_bound_ticks, min((v for v in values if v is not None), default=None))


def _value_of_order(problem: Problem, known: Timeline) -> Value | None:
    """The order of a schedule run with other times and memory; None if it does not fit."""
    timeline = best_times(problem, known.schedule)
    return None if validate(timeline) else value_of(problem, timeline)


def _of(problem: Problem, lower_bound: int, value: Value | None) -> BoundAndValue:
    return BoundAndValue(lower_bound * problem.tick, None if value is None else value * problem.tick)
