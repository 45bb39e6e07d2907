"""Phase for passes of several tasks: CP-SAT on the exact model of all tasks, started from the incumbent."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs import restricted_to_microbatch_order
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.known_order import KnownOrder
from formulations.variables.literal_count import open_pairs
from formulations.variables.literals import TooLong
from formulations.variables.operations import Operations
from pipesched.problem.attainable_spans import Value
from pipesched.schedule.timeline import Timeline
from solver.backends.exact_search import improve
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
        if open_pairs(KnownOrder(Operations(jobs))) > self.most_literals:
            return
        incumbent, limits, state = search.incumbent, search.limits, search.incumbent.state
        assert state.timeline is not None
        assert state.value is not None
        # A schedule known need not keep the order.
        placed = None if self.in_order else placed_in(jobs, state.timeline)
        jobs = restricted_to_microbatch_order(jobs) if self.in_order else jobs
        try:
            starts = None if placed is None else placed.start
            model = ExactModel(jobs, state.value, state.lower_bound, starts=starts)
        except TooLong as reason:
            incumbent.note(f"CP-SAT was not asked for a better schedule: {reason}")
            return

        def callback(timeline: Timeline | None, bound: Value) -> None:
            if timeline is not None:
                incumbent.offer(timeline)
            incumbent.claim(bound)

        seconds = max(_LEAST_SECONDS, min(search.clock.left(self.share), search.clock.left()))
        outcome = improve(model, limits, seconds, search.stop, callback)
        callback(outcome.timeline, outcome.bound)
