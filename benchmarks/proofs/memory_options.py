"""Problems whose activations may be offloaded or recomputed: brute force against the exact model, that against bounds.

    python -m benchmarks.proofs.memory_options --count 10000 --resume

`brute force`: every order of every stream, every way for every activation and every wait that memory may need, on
random tiny problems; against the model's optimum, all analytic bounds, and the model's schedule, which the validator
judges and whose states are all visited. `bounds`: somewhat larger problems on which the bound on memory and copies is
the strongest, against the model's optimum. All evidence goes through the check. Counts are kept in a file with a digest
of the code that they are of; --resume adds to them.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from ortools.sat.python import cp_model

from benchmarks.proofs.bound_sources import digest
from benchmarks.reporting.page import exit_code
from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.files.atomic_write import write_whole
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.microbatch_chains import microbatch_chains
from pipesched.problem.problem import Objective, Problem
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

_ROOT = Path(__file__).resolve().parents[2]
_RESULTS = Path(__file__).with_suffix(".json")
# The code that the counts are of: the model of tasks, and the bounds that know of memory options.
_CODE = (
    "formulations/constraints/memory_capacity.py",
    "formulations/exact/*.py",
    "formulations/jobs/*.py",
    "formulations/variables/*.py",
    "solver/bounds/saving/*.py",
    "pipesched/problem/least_held.py",
)
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
    found = _exact(problem)
    if best is None:
        assert found is None
        return "problems", "nothing fits"
    assert found is not None
    assert why_infeasible(problem) is None
    value, bound = found
    assert bound <= best <= value
    # Under the span the best times of an order may be fractions of those steps that the model counts in.
    assert problem.objective is Objective.SPAN or bound == best == value
    return "problems", *_against(certificates(problem, problem.objective), best, problem)


def bounds(problem: Problem) -> Outcome:
    """AssertionError where a bound is above the value of the model's best schedule."""
    if why_infeasible(problem) is not None:
        return ()
    found = certificates(problem, problem.objective)
    if found[0].kind != KIND or found[0].value == found[1].value:
        return ()
    exact = _exact(problem)
    return () if exact is None else ("problems", *_against(found, exact[0], problem))


def _against(found: list[Certificate], best: Fraction | int, problem: Problem) -> Outcome:
    for one in found:
        assert one.value <= best, one
        assert check_bound(problem, one).verdict is Verdict.VERIFIED, one
    return ("strongest bound attained",) * (found[0].value == best)


def _exact(problem: Problem) -> tuple[Fraction | int, Fraction | int] | None:
    """The value of the model's best schedule, whose memory is safe, and the model's bound; None if nothing fits."""
    chains = microbatch_chains(problem) if problem.microbatch_scale else None
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
        timeline = simulate(problem, schedule) if problem.objective is Objective.MAKESPAN else again
        assert measure(again).peak_memory == measure(timeline_into(chains, again)).peak_memory
    assert validate(timeline) == []
    assert len(model.jobs.jobs) > _MOST_VISITED or always_fits(problem, schedule)
    return value_of(problem, timeline), model.bound(solver.best_objective_bound)


PARTS: dict[str, tuple[Callable[[Random], Problem], Callable[[Problem], Outcome]]] = {
    "brute force": (tiny_memory, brute_force),
    "bounds": (small_memory, bounds),
}


def code() -> str:
    """A digest of the code that counts are of."""
    return digest(sorted(file for pattern in _CODE for file in _ROOT.glob(pattern)))


def attack(part: str, since: int, count: int, until: float = float("inf")) -> tuple[int, Counter[str]]:
    """Compare the problems of the seeds from `since` on, until so many were or processor time is up; the next seed."""
    draw, compare = PARTS[part]
    seed, found = since, Counter[str]()
    while found["problems"] < count and time.process_time() < until:
        try:
            found.update(compare(draw(Random(seed))))
        except AssertionError:
            print(f"{part}, seed {seed}: they differ", file=sys.stderr)
            raise
        seed += 1
    return seed, found


def run(args: Namespace) -> int:
    """Compare until there are as many problems as asked for, and keep the counts."""
    results: dict[str, Any] = {}
    if args.resume and args.results.exists():
        results = json.loads(args.results.read_text(encoding="utf-8"))
    until = time.process_time() + args.seconds
    for part in PARTS:
        kept = results.get(part, {})
        kept = kept if kept.get("code") == code() else {"seeds": kept.get("seeds", 0)}
        while kept.get("problems", 0) < args.count and time.process_time() < until:
            few = min(args.count - kept.get("problems", 0), 250)
            seeds, found = attack(part, kept["seeds"], few, until)
            counts = {name: kept.get(name, 0) + found[name] for name in {*kept, *found} - {"seeds", "code"}}
            kept = {**counts, "seeds": seeds, "code": code()}
            results[part] = kept
            write_whole(args.results, json.dumps(results, indent=1, sort_keys=True) + "\n")
        print(f"{part}: {', '.join(f'{name} {number}' for name, number in sorted(kept.items()))}")
    return 0


def main() -> int:
    """Compare random problems, print the counts."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="problems of each part (default 10000)")
    parser.add_argument("--seconds", type=float, default=3600.0, help="of processor time at most (default 3600)")
    parser.add_argument("--results", type=Path, default=_RESULTS, metavar="FILE")
    parser.add_argument("--resume", action="store_true", help="add to the counts of the file")
    args = parser.parse_args()
    return exit_code(lambda: run(args))


if __name__ == "__main__":
    sys.exit(main())
