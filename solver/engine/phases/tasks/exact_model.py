"""Phase for passes of several tasks: CP-SAT on the exact model of all tasks, started from the incumbent."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.tasks.jobs import Jobs, restricted_to_microbatch_order
from formulations.tasks.jobs_of_problem import jobs_of
from formulations.tasks.known_order import KnownOrder
from formulations.tasks.order_of_jobs import literal_count
from formulations.tasks.schedule_of_starts import schedule_of_starts
from formulations.tasks.task_model import TaskModel
from formulations.variables.model_variables import TooLong
from pipesched.errors import Disagreement
from solver.backends.cp_sat import EXHAUSTIVE, Callbacks, Parameters, ValueOf, solve_model
from solver.engine.search import Search
from solver.tasks.placing import placed_in

_LEAST_SECONDS = 0.1


@dataclass(frozen=True)
class TaskExactModel:
    """A share of the time, for problems of at most so many jobs and order literals.

    Its bounds hold for every schedule unless two passes may run as one block, which it does not know. `in_order` keeps
    micro-batches in their order where activations may be offloaded or recomputed: many schedules fewer, which are often
    good ones, and no bound.
    """

    share: float = 1.0
    most_jobs: int = 2_500
    most_literals: int = 20_000
    in_order: bool = False
    name: str = "CP-SAT"

    def applies(self, search: Search) -> bool:
        network = search.problem.network
        if self.in_order and not network.options:
            return False
        jobs = sum(len(tasks) * len(network.numbers[of]) for of, tasks in network.tasks.items())
        return jobs <= self.most_jobs and search.clock.left(self.share) > 0

    def run(self, search: Search) -> None:
        jobs = jobs_of(search.problem)
        if literal_count(jobs, KnownOrder(jobs)) > self.most_literals:
            return
        state = search.incumbent.state
        assert state.timeline is not None
        assert state.value is not None
        # A schedule known need not keep the order.
        placed = None if self.in_order else placed_in(jobs, state.timeline)
        jobs = restricted_to_microbatch_order(jobs) if self.in_order else jobs
        try:
            model = TaskModel(jobs, state.value, state.lower_bound, None if placed is None else placed.start)
        except TooLong as reason:
            search.incumbent.note(f"CP-SAT was not asked for a better schedule: {reason}")
            return
        self._solve(search, jobs, model)

    def _solve(self, search: Search, jobs: Jobs, model: TaskModel) -> None:
        incumbent, limits = search.incumbent, search.limits

        def on_solution(value_of: ValueOf, _: float) -> None:
            schedule = schedule_of_starts(jobs, model.starts(value_of), "optimal")
            if schedule is None:
                raise Disagreement("CP-SAT gives an order whose memory is not safe", EXHAUSTIVE)
            search.offer_order(schedule)

        def on_bound(bound: float) -> None:
            if not (search.problem.overlaps or self.in_order) and bound >= 0:
                incumbent.claim(model.bound(bound))

        seconds = max(_LEAST_SECONDS, min(search.clock.left(self.share), search.clock.left()))
        parameters = Parameters(seconds, limits.deterministic, limits.seed, limits.workers, limits.gap)
        answer = solve_model(model.cp, parameters, search.stop, Callbacks(on_solution, on_bound))
        if answer.infeasible:
            if self.in_order:
                return
            raise Disagreement("CP-SAT finds no order of tasks although a valid schedule is known", EXHAUSTIVE)
        on_bound(answer.bound)
