"""Sensitivity analysis: the bottleneck, and the effect of changes of memory, links, passes or stages."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from pipesched.arguments import A_SOLUTION, refuse_other
from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.analysis.explanation import BoundAndValue, Effect, Explanation
from pipesched.results.solution import Solution, Status
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.analysis.bottleneck import bottleneck
from solver.analysis.perturbations import changes
from solver.analysis.time_budget import Budget
from solver.construction.timing import best_times
from solver.limits import Limits, limits_from

# Called with how many of how many questions are answered, and the next one.
OnProgress = Callable[[int, int, str], None]


def explain(
    solution: Solution, limits: Limits | None = None, on_progress: OnProgress | None = None, stop: Event | None = None
) -> Explanation:
    """Find the bottleneck from certificates, then solve every changed problem, each in its share of the limits.

    `limits` None: those of `Limits()`. The problem itself is solved once more first. Changes for which no time is left,
    and all once `stop` is set, are listed as untried. `on_progress(done, number, text)` is called before each of the
    `number` solves, with the solves done and the text of the change. Raises ValueError if the solution has no schedule,
    or the objective is the period.
    """
    refuse_other("explain", solution, Solution, A_SOLUTION)
    limits = limits_from("explain", limits, None)
    if solution.timeline is None:
        raise ValueError("without a schedule there is nothing to explain")
    if solution.problem.objective.repeats:
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
    """Return a solve's bound and value in the file's unit, with the value of the `known` order if that is better."""
    if found.status is Status.INFEASIBLE:
        return _of(found.problem, found.lower_bound_ticks, None)
    values = [found.value_ticks, _value_of_order(found.problem, known)]
    return _of(found.problem, found.lower_bound_ticks, min((v for v in values if v is not None), default=None))


def _value_of_order(problem: Problem, known: Timeline) -> Value | None:
    """Return the value in ticks of a known order in a problem with other times and memory.

    None if it is invalid there, or the placement is another one.
    """
    if problem.placement != known.problem.placement:
        return None
    timeline = best_times(problem, known.schedule)
    return None if validate(timeline) else value_of(problem, timeline)


def _of(problem: Problem, lower_bound: Ticks, value: Value | None) -> BoundAndValue:
    return BoundAndValue(lower_bound * problem.tick, None if value is None else value * problem.tick)
