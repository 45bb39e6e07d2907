"""Runs CP-SAT on a model: limits, progress, interruption, and schedules out of its solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Thread

from ortools.sat.python import cp_model

from formulations.full_horizon import FullHorizon
from pipesched.errors import Disagreement
from pipesched.timeline import Timeline
from solver.best_times import times_within
from solver.limits import Limits

# Hears of a better timeline (or None) and of the bound proved so far, in ticks.
Hear = Callable[[Timeline | None, int], None]


@dataclass(frozen=True)
class Outcome:
    """What CP-SAT ended with; `bound` is in ticks."""

    timeline: Timeline | None
    bound: int


def improve(model: FullHorizon, limits: Limits, seconds: float, stop: Event, hear: Hear) -> Outcome:
    """Search for better schedules and better bounds until optimal, told to stop, or out of time."""
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.max_time_in_seconds = seconds
    parameters.random_seed = limits.seed
    parameters.num_workers = limits.workers
    parameters.relative_gap_limit = limits.gap
    if limits.deterministic is not None:
        parameters.max_deterministic_time = limits.deterministic
        parameters.max_time_in_seconds = float("inf")
    listener = _Listener(model, hear)
    solver.best_bound_callback = listener.on_bound
    watch = Thread(target=_stop_when_told, args=(stop, solver, done := Event()), daemon=True)
    watch.start()
    try:
        status = solver.solve(model.cp, listener)
    finally:
        done.set()
        watch.join()
    if status == cp_model.MODEL_INVALID:
        raise Disagreement(f"CP-SAT rejects the model: {model.cp.validate()}")
    if listener.error is not None:
        raise listener.error
    if status == cp_model.INFEASIBLE:
        # The incumbent itself is a solution of the model, so there must be one.
        raise Disagreement("CP-SAT finds the model infeasible although a valid schedule is known")
    return Outcome(listener.best, model.ticks(solver.best_objective_bound) if model.bounds_everything else 0)


def _stop_when_told(stop: Event, solver: cp_model.CpSolver, done: Event) -> None:
    """Until the search is over: a request that comes before CP-SAT has started would be lost, so it is repeated."""
    while not done.wait(0.1):
        if stop.is_set():
            solver.stop_search()


class _Listener(cp_model.CpSolverSolutionCallback):
    """Turns CP-SAT's solutions into timelines as they come. An error waits for the search to end."""

    def __init__(self, model: FullHorizon, hear: Hear) -> None:
        super().__init__()
        self._model, self._hear = model, hear
        self._bound = 0
        self.best: Timeline | None = None
        self.error: Exception | None = None

    def on_solution_callback(self) -> None:
        """Called by CP-SAT for every better solution."""
        try:
            self._take()
        except Exception as error:
            self.error = error
            self.stop_search()

    def _take(self) -> None:
        claimed = self._model.ticks(self.objective_value)
        timeline = times_within(self._model.problem, self._model.decode(self.value), claimed)
        if timeline is None:
            raise Disagreement(f"CP-SAT claims {claimed} ticks for an order that cannot be run in that time")
        self.best = timeline
        self._hear(timeline, self._bound)

    def on_bound(self, bound: float) -> None:
        """Called by CP-SAT for every better bound, possibly on another thread."""
        if self._model.bounds_everything and bound >= 0:
            self._bound = max(self._bound, self._model.ticks(bound))
            try:
                self._hear(None, self._bound)
            except Exception as error:
                self.error = error
