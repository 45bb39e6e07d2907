"""Brute force against the exact model where activations may be offloaded or recomputed.

`python -m benchmarks.proofs.memory_options`: every order of every stream, every way for every activation and every wait
that memory may need, on random tiny problems; against the model's optimum, all analytic bounds, and the model's
schedule, which the validator judges and whose states are all visited.
"""

from __future__ import annotations

import argparse
import time
from random import Random
from typing import NamedTuple

from ortools.sat.python import cp_model

from formulations.tasks.jobs_of_problem import jobs_of
from formulations.tasks.schedule_of_starts import schedule_of_starts
from formulations.tasks.task_model import TaskModel
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.microbatch_chains import microbatch_chains
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.chain_timelines import schedule_back, timeline_back, timeline_into
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.bounds.analytic.catalogue import certificates
from solver.construction.timing import best_times
from tests.support.task_brute_force import always_fits, optimum
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory

# More ticks than all tasks of such a problem take.
_AMPLE = 10_000


class Outcome(NamedTuple):
    """Of one problem: whether it was compared, whether anything fits, and whether an analytic bound is the optimum."""

    compared: bool
    fits: bool = False
    tight: bool = False


def compare(problem: Problem, most_waits: int) -> Outcome:
    """AssertionError where brute force and model differ; not compared where more waits than that would be tried."""
    try:
        best = optimum(problem, problem.objective, most_waits)
    except ValueError:
        return Outcome(False)
    chains = microbatch_chains(problem) if problem.microbatch_scale else None
    asked = problem if chains is None else chains.problem
    model, solver = TaskModel(jobs_of(asked), _AMPLE), cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model.cp)
    if best is None:
        assert status == cp_model.INFEASIBLE
        return Outcome(True)
    assert status == cp_model.OPTIMAL
    assert why_infeasible(problem) is None
    schedule = schedule_of_starts(model.jobs, model.starts(solver.value))
    assert schedule is not None
    timeline = best_times(asked, schedule)
    if chains is not None:
        # The schedule of the chains in terms of the problem, timed and judged there.
        schedule = schedule_back(chains, schedule)
        again = timeline_back(chains, timeline)
        timeline = simulate(problem, schedule) if problem.objective is Objective.MAKESPAN else again
        assert measure(again).peak_memory == measure(timeline_into(chains, again)).peak_memory
    assert validate(timeline) == []
    assert always_fits(problem, schedule)
    value, bound = value_of(problem, timeline), model.bound(solver.best_objective_bound)
    assert bound <= best <= value
    # Under the span the best times of an order may be fractions of those steps that the model counts in.
    assert problem.objective is Objective.SPAN or bound == best == value
    least = max(one.value for one in certificates(problem, problem.objective))
    assert least <= best
    return Outcome(True, True, least == best)


def main() -> None:
    """Compare random problems until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-waits", type=int, default=5)
    parser.add_argument("--unequal", action="store_true", help="micro-batches of unequal work")
    args = parser.parse_args()
    draw = tiny_unequal_memory if args.unequal else tiny_memory
    until, seed, found = time.monotonic() + args.seconds, args.seed, list[Outcome]()
    while time.monotonic() < until:
        try:
            found.append(compare(draw(Random(seed)), args.most_waits))
        except AssertionError:
            print(f"seed {seed}: brute force and model differ")
            raise
        seed += 1
    compared = [one for one in found if one.compared]
    fitting = sum(one.fits for one in compared)
    tight = sum(one.tight for one in compared)
    print(
        f"seeds {args.seed} to {seed - 1}: {len(compared)} compared, {len(found) - len(compared)} with too many waits; "
        f"{len(compared) - fitting} that nothing fits; analytic bounds the optimum in {tight} of {fitting}"
    )


if __name__ == "__main__":
    main()
