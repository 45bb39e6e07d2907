"""CP-SAT on the exact model: better schedules and better bounds, reported as they are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event

from formulations.exact.exact_model import ExactModel
from pipesched.errors import Disagreement
from pipesched.problem.attainable_spans import Value
from pipesched.schedule.timeline import Timeline
from solver.backends.cp_sat import EXHAUSTIVE, Answer, Callbacks, Parameters, ValueOf, solve_model
from solver.construction.timing import times_within
from solver.limits import Limits

# Called with a better timeline (or None) and the bound proved so far, in ticks.
Callback = Callable[[Timeline | None, Value], None]


@dataclass(frozen=True)
class CpSatResult:
    """Final result of CP-SAT: the best timeline found (None: none), the proved bound in ticks (0: nothing proved).

    `complete`: nothing of the model was left to search. The timeline's problem may be in finer ticks, the bound is in
    those of the model's problem.
    """

    timeline: Timeline | None
    bound: Value
    complete: bool = False


def improve(
    model: ExactModel, limits: Limits, seconds: float, stop: Event, callback: Callback, core_guided: bool = False
) -> CpSatResult:
    """Search for better schedules and better bounds until optimal, stopped, or after `seconds`.

    Counted work in `limits` ends it in place of `seconds`, and so does its `gap`. Every improvement is reported by
    `callback(timeline, bound)`: the better timeline, or None if only the bound is better, and the bound proved so far,
    in ticks; it runs on a thread of CP-SAT. `core_guided` selects core-guided search. `Disagreement` if CP-SAT
    contradicts the known schedule, or gives an order that cannot be run in its value or memory; errors of `callback`
    are raised, too.
    """
    search = _Search(model, callback)
    answer = search.run(replace(_parameters(model, limits, seconds), gap=limits.gap, core_guided=core_guided), stop)
    if answer.infeasible and model.bounds_everything:
        # The incumbent itself is a solution of the model, so there must be one.
        raise Disagreement("CP-SAT finds the model infeasible although a valid schedule is known", EXHAUSTIVE)
    bound = model.bound(answer.bound) if model.bounds_everything else 0
    return CpSatResult(search.best, bound, answer.complete)


@dataclass(frozen=True)
class First:
    """Result of a search for any schedule: its timeline, or `none` True if it is proved that none exists.

    `timeline` None with `none` False: the time was too short.
    """

    timeline: Timeline | None
    none: bool


def first(model: ExactModel, limits: Limits, seconds: float, stop: Event) -> First:
    """Search for any schedule of the model, where none is known, for at most `seconds`.

    Counted work in `limits` is the limit in place of `seconds`. `Disagreement` if CP-SAT gives an order that cannot be
    run in its value or memory.
    """
    search = _Search(model, lambda *_: None)
    answer = search.run(replace(_parameters(model, limits, seconds), first_solution=True), stop)
    return First(search.best, answer.infeasible and model.bounds_everything)


def _parameters(model: ExactModel, limits: Limits, seconds: float) -> Parameters:
    clauses_only = model.model.order is not None
    return Parameters(seconds, limits.deterministic, limits.seed, workers=limits.workers, clauses_only=clauses_only)


class _Search:
    """One CP-SAT call on the exact model, whose solutions become timelines, and whose bounds become ticks.

    `best` is the last timeline found, None before one is; `callback` gets each, and each better bound.
    """

    def __init__(self, model: ExactModel, callback: Callback) -> None:
        self._model, self._callback = model, callback
        self._bound: Value = 0
        self.best: Timeline | None = None

    def run(self, parameters: Parameters, stop: Event) -> Answer:
        return solve_model(self._model.cp, parameters, stop, Callbacks(self.on_solution, self.on_bound))

    def on_solution(self, value_of: ValueOf, objective: float) -> None:
        claimed = self._model.most(objective)
        schedule = self._model.decode(value_of)
        if schedule is None:
            raise Disagreement("CP-SAT gives an order whose memory is not safe", EXHAUSTIVE)
        timeline = times_within(self._model.jobs.problem, schedule, claimed)
        if timeline is None:
            text = f"CP-SAT claims {claimed} ticks for an order that cannot be run in that time"
            raise Disagreement(text, EXHAUSTIVE)
        self.best = timeline
        self._callback(timeline, self._bound)

    def on_bound(self, bound: float) -> None:
        if self._model.bounds_everything and bound >= 0:
            self._bound = max(self._bound, self._model.bound(bound))
            self._callback(None, self._bound)
