"""Construction heuristic: CP-SAT on the exact model, for a first schedule or the proof that none exists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs import Jobs
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literals import TooLong
from pipesched.deadline import Deadline, within
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from solver.backends.exact_search import first
from solver.engine.search import Search
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class FirstSchedule:
    """CP-SAT for a first schedule where no other heuristic found one, as with tight host memory.

    It may take `least_seconds` even beyond the time limit, and ends the search as infeasible if CP-SAT proves that.
    """

    least_seconds: float = tuned(1.0, "s, even beyond the time limit", 0, 10)
    name: str = "CP-SAT, a first schedule"

    def applies(self, search: Search) -> bool:
        return search.incumbent.timeline is None and not search.takes_long_to_state

    def run(self, search: Search) -> None:
        seconds = max(self.least_seconds, search.clock.left())
        within(Deadline.after(seconds, search.stop), partial(self._solve, search, seconds))

    def _solve(self, search: Search, seconds: float) -> None:
        jobs = jobs_of(search.problem)
        try:
            model = ExactModel(jobs, _all_in_turn(jobs), 0)
        except TooLong as reason:
            search.incumbent.note(f"CP-SAT was not asked for a first schedule: {reason}")
            return
        found = first(model, search.limits, seconds, search.stop)
        if found.timeline is not None:
            search.incumbent.offer(found.timeline)
        elif found.none:
            search.prove_infeasible(_reason(search.problem))


def _all_in_turn(jobs: Jobs) -> Ticks:
    """Return the ticks, rounded up, of all jobs and lags in sequence: an upper bound on the least makespan."""
    return -(-(sum(job.steps for job in jobs.jobs) + sum(one.lag for one in jobs.precedences)) // jobs.scale)


def _reason(problem: Problem) -> str:
    limits = ["the memory of every device"] if any(room is not None for room in problem.room) else []
    limits += ["that of every host"] if any(host.capacity is not None for host in problem.resources.hosts) else []
    most, window = problem.parameters.most, problem.parameters.window
    limits += [f"{window} gathered stages of a device at once at most"] if window is not None else []
    limits += [f"{most} gatherings of parameters at most"] if most is not None else []
    return f"no schedule keeps {' and '.join(limits)}: CP-SAT searched the exact model to its end"
