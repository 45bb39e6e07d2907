"""Recheck of a bound by CP-SAT's exhaustive search, with other parameters."""

from __future__ import annotations

from collections.abc import Collection
from threading import Event

from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literals import TooLong
from pipesched.checking.attainable import greatest_attainable_below
from pipesched.checking.finding import NotCoveredError
from pipesched.errors import Disagreement
from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import without_scale
from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.problem.rescale import finer
from pipesched.results.evidence import Refutation
from solver.backends.cp_sat import EXHAUSTIVE, Parameters, solve_model
from solver.limits import Limits


def recheck_refutation(
    problem: Problem, bound: Value, evidence: Refutation, limits: Limits, stop: Event
) -> bool | None:
    """Return True if CP-SAT finds once more that no schedule is below the bound (in ticks), None if it does not finish.

    The model is built again, and searched with presolve and linear relaxation, which the search for bounds leaves out,
    and with another seed. False if a schedule is found on the devices that the evidence names. Raises `Disagreement` if
    these are all devices, and `NotCoveredError` if there is no such model: for the period, if it would be too large, or
    if it would leave blocks out.
    """
    problem = without_scale(problem)
    threshold = greatest_attainable_below(problem, bound)
    if threshold < 0:
        return True
    model = _model(finer(problem, threshold.denominator), threshold.numerator, evidence.devices)
    work = limits.deterministic
    parameters = Parameters(limits.seconds, work, limits.seed + 1, workers=limits.workers, first_solution=True)
    answer = solve_model(model, parameters, stop)
    if answer.has_solution and evidence.devices is None:
        found = f"a schedule of {amount(problem, threshold)} or less, and the file states that none is below"
        raise Disagreement(f"CP-SAT found {found} {amount(problem, bound)}", EXHAUSTIVE)
    return False if answer.has_solution else True if answer.infeasible else None


def _model(problem: Problem, at_most: Ticks, devices: Collection[DeviceId] | None) -> cp_model.CpModel:
    """Return the model of all schedules of at most `at_most` ticks in which devices obey their limits.

    They are these devices, or all (None). `NotCoveredError` for the period, and where the model would be too large or
    not complete.
    """
    if problem.objective.repeats:
        raise NotCoveredError("no search by CP-SAT bounds a period")
    try:
        model = ExactModel(jobs_of(problem), at_most, 0, devices=devices)
    except TooLong as why:
        raise NotCoveredError(str(why)) from None
    if not model.bounds_everything:
        raise NotCoveredError(
            "there are too many overlapped blocks to search them all, or passes of several tasks overlap"
        )
    return model.cp
