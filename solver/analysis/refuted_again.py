"""A bound by CP-SAT's exhaustive search once more, with other parameters."""

from __future__ import annotations

from threading import Event

from formulations.exact.exact_model import ExactModel
from formulations.variables.model_variables import TooLong
from pipesched.checking.attainable import greatest_attainable_below
from pipesched.errors import Disagreement
from pipesched.problem.attainable_spans import Value
from pipesched.problem.formatting import amount
from pipesched.problem.microbatch_chains import without_scale
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.rescale import finer
from pipesched.results.evidence import Refutation
from solver.backends.cp_sat import EXHAUSTIVE, Parameters, solve_model
from solver.limits import Limits


def refuted_again(problem: Problem, bound: Value, evidence: Refutation, limits: Limits, stop: Event) -> bool | None:
    """Whether CP-SAT again finds no schedule below the bound (in ticks); None where it comes to no end.

    It searches the same model, stated anew, with presolve and linear relaxation (which the search for bounds leaves
    out), without symmetries, and with another seed. `Disagreement` where it finds a schedule of all devices.
    """
    if problem.objective is Objective.PERIOD or not problem.network.one_task_each:
        return None
    problem = without_scale(problem)
    below = greatest_attainable_below(problem, bound)
    if below < 0:
        return True
    fine = finer(problem, below.denominator)
    try:
        model = ExactModel(fine, below.numerator, 0, devices=evidence.devices)
    except TooLong:
        return None
    if not model.bounds_everything:
        return None
    work = limits.deterministic
    parameters = Parameters(
        limits.seconds, work, limits.seed + 1, workers=limits.workers, first_solution=True, symmetry=False
    )
    answer = solve_model(model.cp, parameters, stop)
    if answer.has_solution and evidence.devices is None:
        found = f"a schedule of {amount(problem, below)} or less, and the file states that none is below"
        raise Disagreement(f"CP-SAT found {found} {amount(problem, bound)}", EXHAUSTIVE)
    return False if answer.has_solution else True if answer.infeasible else None
