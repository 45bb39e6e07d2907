"""Attacks on arguments of the exact model: backwards in one go, fractions of a span, orders by memory and symmetry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from ortools.sat.python import cp_model

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.checking.attainable import denominators
from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.solution import Status
from solver.limits import Limits
from solver.solve import solve
from tests.support.bucket_problems import bucket_problem
from tests.support.makers import problem
from tests.support.open_ends import open_ends
from tests.support.task_brute_force import TooManyOrdersError, optimum

_LIMITS = Limits(seconds=600, workers=1, deterministic=3)
_MOST_WAITS, _MOST_ORDERS = 4, 3_000
_AMPLE, _WORK = 10_000, 4.0
Outcome = Sequence[str]


def buckets(number: int) -> Outcome:
    """Backwards of several tasks in one go, with reductions in buckets: the solve against every order."""
    return _against_every_order(bucket_problem(Random(number)))


def fractions(number: int) -> Outcome:
    """Spans of devices that may begin or end by themselves: the solve against every order, fractions too."""
    one = open_ends(Random(number))
    assert denominators(one) == largest_denominator(one), "search and check differ in what a span may be"
    return _against_every_order(one)


def _against_every_order(one: Problem) -> Outcome:
    try:
        best = optimum(one, one.objective, _MOST_WAITS, _MOST_ORDERS)
    except TooManyOrdersError:
        return ("too many orders",)
    found = solve(one, _LIMITS)
    assert best is not None and found.value_ticks is not None and not found.notes, found.notes
    value, bound = (in_ticks_of(one, ticks, found.problem) for ticks in (found.value_ticks, found.lower_bound_ticks))
    proved = found.status is Status.OPTIMAL
    assert bound <= best <= value and (value == best or not proved), (bound, best, value)
    return "problems", *("proved",) * proved, *("a fraction of a tick",) * (best.denominator > 1)


def symmetries(number: int) -> Outcome:
    """Pieces within little memory: the exact model against itself without an order of micro-batches or of memory."""
    one = _pieces(Random(number))
    if why_infeasible(one) is not None:
        return ("nothing fits",)
    jobs = jobs_of(one)
    own, other = _least(jobs), _least(replace(jobs, renumbered=False))
    if "unknown" in (own, other):
        return ("left out: too long",)
    assert own == other, f"{own} in the order of micro-batches, {other} in any"
    return "problems", *("nothing fits",) * (own is None), *("ways to save memory",) * bool(one.network.options)


def _least(jobs: Jobs) -> int | str | None:
    """The least value in whole ticks; None where nothing fits."""
    model, solver = ExactModel(jobs, _AMPLE, 0), cp_model.CpSolver()
    solver.parameters.num_workers, solver.parameters.max_deterministic_time = 1, _WORK
    status = solver.solve(model.cp)
    if status == cp_model.INFEASIBLE:
        return None
    return int(model.most(solver.objective_value)) if status == cp_model.OPTIMAL else "unknown"


def _pieces(random: Random) -> Problem:
    """Two pieces each of two or three micro-batches, whose keys and values stay; copies, recomputation, or neither."""
    devices, microbatches = random.choice(((1, 2), (1, 3), (2, 2)))

    def some(least: int, most: int) -> list[int]:
        return [random.randint(least, most) for _ in range(2)]

    kept, activation = random.choice((0, 1, 2)), random.choice((1, 2))
    least = 2 * activation + 2 * kept
    memory: dict[str, object] = {"activation": activation, "kept_for_later": kept}
    memory["capacity"] = [random.randint(max(1, least - 1), 2 * least) for _ in range(devices)]
    kind = random.random()
    if kind < 0.25:
        memory["offload"] = {"out": some(0, 3), "in": some(0, 3), "on": random.choice((["out", "in"], "pcie"))}
    elif kind < 0.5:
        memory["recompute"] = [{"name": "full", "time": random.randint(0, 3), "keeps": 0}]
    times = {"forward": some(0, 4), "backward": some(0, 4), "transfer": random.randint(0, 2)}
    streams, objective = ["compute", "out", "in", "pcie"], random.choice(("makespan", "makespan", "span"))
    return problem(
        devices, microbatches, sequence_chunks=2, times=times, memory=memory, streams=streams, objective=objective
    )
