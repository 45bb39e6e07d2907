"""Runs CP-SAT on a model: limits, progress, interruption, and schedules out of its solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

from ortools.sat.python import cp_model, cp_model_helper

from formulations.full_horizon import FullHorizon
from pipesched.errors import Disagreement
from pipesched.timeline import Timeline
from solver.best_times import times_within
from solver.interruptible import run_until
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
    parameters.catch_sigint_signal = False  # Ctrl-C is the caller's, through `stop`
    parameters.cp_model_probing_level = 0
    if model.model.order is not None:
        clauses_alone(parameters)
    if limits.deterministic is not None:
        parameters.max_deterministic_time = limits.deterministic
        parameters.max_time_in_seconds = float("inf")
    listener = _Listener(model, hear)
    solver.best_bound_callback = listener.on_bound
    status = run_until(stop, lambda: solver.solve(model.cp, listener), solver.stop_search)
    if status == cp_model.MODEL_INVALID:
        raise Disagreement(f"CP-SAT rejects the model: {model.cp.validate()}")
    if listener.error is not None:
        raise listener.error
    if status == cp_model.INFEASIBLE:
        # The incumbent itself is a solution of the model, so there must be one.
        raise Disagreement("CP-SAT finds the model infeasible although a valid schedule is known")
    return Outcome(listener.best, model.ticks(solver.best_objective_bound) if model.bounds_everything else 0)


def clauses_alone(parameters: cp_model_helper.SatParameters) -> None:
    """For models with order literals: clauses, learnt and propagated at once, and nothing else.

    What a linear relaxation can prove was proved before (solver/relaxed.py). Presolve, probing, and looking for sets of
    literals that push a start take longer than the search needs to find the same (docs/engine.md).
    """
    parameters.linearization_level = parameters.cp_model_probing_level = 0
    parameters.cp_model_presolve = False
    parameters.auto_detect_greater_than_at_least_one_of = False


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
