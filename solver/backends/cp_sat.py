"""The CP-SAT backend: parameters, limits, callbacks and interruption of every call of the solver."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event

from ortools.sat.python import cp_model
from ortools.sat.python.cp_model import IntVar, NotBooleanVariable

from pipesched.deadline import TimeLimitReached
from pipesched.errors import Disagreement
from solver.backends.interruptible import run_until

# Kind of a certificate for a bound that CP-SAT's search proves.
EXHAUSTIVE = "exhaustive search by CP-SAT"
_LEAST_SECONDS = 0.01
# Without probing, the presolve of OR-Tools 9.15 calls some feasible models infeasible: 39 of 3,600 models with numbers
# of 10**9 and more, none of 3,600 below (tests/solver/backends/test_cp_sat.py has one). Such an answer for a model with
# large numbers is proved again without presolve.
_PRESOLVE_IS_EXACT_UNTIL = 2**26

ValueOf = Callable[[IntVar | NotBooleanVariable], int]


@dataclass(frozen=True)
class Parameters:
    """Parameters of one call of CP-SAT.

    `deterministic` limits the call in CP-SAT's own units of work in place of `seconds` (None: seconds count). It also
    ends at a relative gap of `gap`, a share from 0 to 1, or with `first_solution` at any solution. `workers` 0 means
    all cores.

    `clauses_only` is for models with order literals: CP-SAT then learns and propagates clauses and does nothing else,
    not even `presolve`. Linear relaxation, presolve, probing, and sets of literals that push a start take longer than
    they save there (docs/engine.md). `core_guided` is core-guided search: it assumes the least value, and learns from
    each conflict how much more is needed.
    """

    seconds: float
    deterministic: float | None
    seed: int
    workers: int = 1  # 0: all cores
    gap: float = 0.0
    first_solution: bool = False
    clauses_only: bool = False
    presolve: bool = True
    core_guided: bool = False


@dataclass(frozen=True)
class Callbacks:
    """Functions that CP-SAT calls for every better solution, and for every better bound.

    `on_solution(value_of, objective)` gets a function that returns a variable's value in the solution, and the
    objective's value; `on_bound(bound)` the lower bound on the objective. They are called on any thread of CP-SAT. An
    error in one of them ends the call of CP-SAT, which then raises it.
    """

    on_solution: Callable[[ValueOf, float], None]
    on_bound: Callable[[float], None]


@dataclass(frozen=True)
class Answer:
    """Result of a call of CP-SAT.

    `has_solution`: a solution was found, so that `value_of` may be called, which returns a variable's value in the best
    one. `complete`: the search finished, so that this solution is optimal, or none exists. `bound` is the proved lower
    bound on the model's objective, which is minimised, an integer like the objective; it means nothing for a model
    without one. `work` is in CP-SAT's deterministic units.
    """

    has_solution: bool
    complete: bool
    value_of: ValueOf
    bound: int
    work: float

    @property
    def infeasible(self) -> bool:
        return self.complete and not self.has_solution


def solve_model(
    model: cp_model.CpModel, parameters: Parameters, stop: Event, callbacks: Callbacks | None = None
) -> Answer:
    """Solve a model until it is complete, a limit is reached, `stop` is set or the deadline of this step is over.

    If a model with large numbers is found infeasible, it is solved again without presolve, which can be wrong there.
    `Disagreement` if CP-SAT rejects the model; an error of a callback is raised, too.
    """
    began = time.monotonic()
    answer = _solved(model, parameters, stop, callbacks)
    if not answer.infeasible or parameters.clauses_only or _largest(model) < _PRESOLVE_IS_EXACT_UNTIL:
        return answer
    seconds, work = parameters.seconds - (time.monotonic() - began), parameters.deterministic
    left = None if work is None else max(0.0, work - answer.work)
    again = _solved(model, replace(parameters, seconds=seconds, deterministic=left, presolve=False), stop, callbacks)
    return replace(again, work=answer.work + again.work)


def _solved(model: cp_model.CpModel, parameters: Parameters, stop: Event, callbacks: Callbacks | None) -> Answer:
    solver = _solver(parameters)
    listener = None if callbacks is None else _Listener(callbacks, solver.stop_search)
    if listener is not None:
        solver.best_bound_callback = listener.on_bound
    status = run_until(stop, lambda: solver.solve(model, listener), solver.stop_search)
    if status == cp_model.MODEL_INVALID:
        raise Disagreement(f"CP-SAT rejects the model: {model.validate()}", EXHAUSTIVE)
    if listener is not None and listener.error is not None:
        raise listener.error
    return Answer(
        has_solution=status in (cp_model.OPTIMAL, cp_model.FEASIBLE),
        complete=status in (cp_model.OPTIMAL, cp_model.INFEASIBLE),
        value_of=solver.value,
        bound=solver.response_proto.inner_objective_lower_bound,
        work=solver.response_proto.deterministic_time,
    )


def _largest(model: cp_model.CpModel) -> int:
    """Return the largest absolute value that a variable of the model may have; 0 if it has no variables."""
    return max((max(map(abs, variable.domain)) for variable in model.proto.variables), default=0)


def _solver(wanted: Parameters) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed = wanted.workers, wanted.seed
    parameters.relative_gap_limit = wanted.gap
    parameters.stop_after_first_solution = wanted.first_solution
    parameters.catch_sigint_signal = False  # Ctrl-C is the caller's, through `stop`
    parameters.cp_model_probing_level = 0
    # Presolve of 9.15 ends the process on some models whose symmetries it has found (tests/solver/replanning).
    parameters.symmetry_level = 0
    parameters.cp_model_presolve = wanted.presolve and not wanted.clauses_only
    if wanted.clauses_only:
        parameters.linearization_level = 0
        parameters.auto_detect_greater_than_at_least_one_of = False
    parameters.optimize_with_core = wanted.core_guided
    if wanted.deterministic is None:
        parameters.max_time_in_seconds = max(_LEAST_SECONDS, wanted.seconds)
    else:
        parameters.max_deterministic_time = wanted.deterministic
    return solver


class _Listener(cp_model.CpSolverSolutionCallback):
    """Receiver of CP-SAT's callbacks; an error is stored and ends the search by a call of `end`."""

    def __init__(self, callbacks: Callbacks, end: Callable[[], None]) -> None:
        super().__init__()
        self._callbacks, self._end = callbacks, end
        self.error: Exception | TimeLimitReached | None = None

    def on_solution_callback(self) -> None:
        """Pass a better solution on to the callback; CP-SAT calls this. An error of the callback ends the search."""
        try:
            self._callbacks.on_solution(self.value, self.objective_value)
        except (Exception, TimeLimitReached) as error:
            self.error = error
            self._end()

    def on_bound(self, bound: float) -> None:
        """Pass a better bound on to the callback; CP-SAT calls this, possibly on another thread.

        An error of the callback ends the search.
        """
        try:
            self._callbacks.on_bound(bound)
        except (Exception, TimeLimitReached) as error:
            self.error = error
            self._end()
