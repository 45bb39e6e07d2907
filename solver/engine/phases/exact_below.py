"""Phase: CP-SAT on the exact model for a schedule well below the incumbent, which is found, or refuted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literal_count import literal_count
from formulations.variables.literals import TooLong
from pipesched.problem.attainable_spans import Value
from pipesched.problem.microbatch_chains import is_job_shop
from pipesched.results.gap import gap
from pipesched.schedule.timeline import Timeline
from solver.backends.exact_search import at_most
from solver.engine.bound_search import refute
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search
from solver.local_search.units.operation_units import modes_matter


@dataclass(frozen=True)
class ExactModelBelow:
    """Once, within a share of the time, on one core; local search goes on on the others.

    Asked for is a schedule that takes no more than the lower bound and `ask` of the gap. With so short a horizon CP-SAT
    finds the optimum, or refutes it, with a few hundred conflicts where it does neither from the incumbent. Only where
    each device has one stage, backwards are split, the gap is between `above` and `near`, and literals are few.
    """

    share: float = 0.5
    ask: float = 0.7
    above: float = 0.003
    near: float = 0.03
    least_literals: int = 2_500
    most_literals: int = 40_000
    name: str = "CP-SAT well below the incumbent"

    def applies(self, search: Search) -> bool:
        """Not where stating the model takes longer than the time that is left, nor where modes are open."""
        problem, state = search.problem, search.incumbent.state
        if search.takes_long_to_state or self.name in search.entered or search.clock.left(self.share) <= 0:
            return False
        if not search.engine.raise_bounds or not problem.splittable:
            return False
        if state.value is None or not self.above < gap(state.value, state.lower_bound) <= self.near:
            return False
        if any(len(held) > 1 for held in problem.placement.stages_of) or is_job_shop(problem) or modes_matter(problem):
            return False
        return self.least_literals <= literal_count(problem) <= self.most_literals

    def run(self, search: Search) -> None:
        clock, incumbent, limits = search.clock, search.incumbent, search.limits
        seconds, low, value = clock.left(self.share), incumbent.state.lower_bound, incumbent.state.value
        assert value is not None
        asked = floor(low + self.ask * float(value - low))
        try:
            model = ExactModel(jobs_of(search.problem), asked, low)
        except TooLong as reason:
            incumbent.note(f"CP-SAT was not asked for a better schedule: {reason}")
            return

        def callback(timeline: Timeline | None, bound: Value) -> None:
            if timeline is not None:
                incumbent.offer(timeline)
            incumbent.claim(bound)

        work = None if limits.deterministic is None else self.share * limits.deterministic
        one = replace(limits, workers=1, deterministic=work)
        with improving_meanwhile(search):
            outcome = at_most(model, asked, one, min(seconds, clock.left()), search.stop, callback)
        callback(outcome.timeline, outcome.bound)
        state = incumbent.state
        if state.value is not None and 0 < state.value - state.lower_bound < 1 and not search.done():
            refute(search, max(0.0, min(seconds, clock.left())))  # a fraction of a tick
