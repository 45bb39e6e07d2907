"""Problems whose activations may be offloaded or recomputed: brute force against the exact model, that against bounds.

Brute force: every order of every stream, every mode of every activation and every wait that memory may need, on random
tiny problems; against the model's optimum, all analytic bounds, and the model's schedule, which the validator judges
and whose states are all visited. Bounds: somewhat larger problems on which the bound on memory and copies is the
strongest, against the model's optimum. All evidence goes through the check.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.chains.microbatch_chains import microbatch_chains
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.chain_timelines import schedule_back, timeline_back, timeline_into
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.bounds.saving.memory_and_copies import KIND
from solver.construction.timing import best_times
from tests.support.small_memory import small_memory
from tests.support.task_brute_force import always_fits, optimum
from tests.support.tiny_memory import tiny_memory

# More ticks than all tasks of such a problem take.
_AMPLE = 10_000
_MOST_WAITS = 5
# Jobs beyond which the states of a schedule are too many to visit all.
_MOST_VISITED = 16

# What one problem was: the names under which it counts; none where it was not compared.
Outcome = tuple[str, ...]


def brute_force(problem: Problem) -> Outcome:
    """AssertionError where brute force and model differ; not compared where many waits would have to be tried."""
    try:
        best = optimum(problem, problem.objective, _MOST_WAITS)
    except ValueError:
        return ("left out: too many waits",)
    found = exact(problem)
    if best is None:
        assert found is None
        return "problems", "nothing fits"
    assert found is not None
    assert why_infeasible(problem) is None
    value, bound = found
    assert bound <= best <= value
    # Under the span the best times of an order may be fractions of those steps that the model counts in.
    assert problem.objective.by_device or bound == best == value
    return "problems", *_against(certificates(problem, problem.objective), best, problem)


def bounds(problem: Problem) -> Outcome:
    """AssertionError where a bound is above the value of the model's best schedule."""
    if why_infeasible(problem) is not None:
        return ()
    found = certificates(problem, problem.objective)
    if found[0].kind != KIND or found[0].value_ticks == found[1].value_ticks:
        return ()
    known = exact(problem)
    return () if known is None else ("problems", *_against(found, known[0], problem))


def _against(found: list[Certificate], best: Fraction | int, problem: Problem) -> Outcome:
    for one in found:
        assert one.value_ticks <= best, one
        assert check_bound(problem, one).verdict is Verdict.VERIFIED, one
    return ("strongest bound attained",) * (found[0].value_ticks == best)


def exact(problem: Problem) -> tuple[Fraction | int, Fraction | int] | None:
    """The value of the model's best schedule, whose memory is safe, and the model's bound; None if nothing fits."""
    chains = microbatch_chains(problem) if problem.walks.scale else None
    asked = problem if chains is None else chains.problem
    model, solver = ExactModel(jobs_of(asked), _AMPLE, 0), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model.cp)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    schedule = model.decode(solver.value)
    assert schedule is not None
    timeline = best_times(asked, schedule)
    if chains is not None:
        # The schedule of the chains in terms of the problem, timed and judged there.
        schedule = schedule_back(chains, schedule)
        again = timeline_back(chains, timeline)
        timeline = simulate(problem, schedule) if problem.objective.from_zero else again
        assert measure(again).peak_quanta == measure(timeline_into(chains, again)).peak_quanta
    assert validate(timeline) == []
    assert len(model.jobs.jobs) > _MOST_VISITED or always_fits(problem, schedule)
    return value_of(problem, timeline), model.bound(solver.best_objective_bound)


def all_claims(number: int) -> Outcome:
    """Of a tiny problem, all claims against brute force."""
    return brute_force(tiny_memory(Random(number)))


def strongest_bound(number: int) -> Outcome:
    """Of a somewhat larger problem, the bound on memory and copies against the exact model."""
    return bounds(small_memory(Random(number)))
