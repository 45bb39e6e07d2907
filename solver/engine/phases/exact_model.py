"""Phase: CP-SAT on the exact model of all passes, started from the incumbent."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import inf

from formulations.exact.exact_model import improving
from formulations.variables.literal_count import literal_count
from formulations.variables.literals import TooLong
from formulations.variables.model_variables import MOST_LITERALS
from pipesched.problem.attainable_spans import Value
from pipesched.problem.microbatch_chains import is_job_shop
from pipesched.problem.problem import Objective, Problem
from pipesched.results.gap import gap
from pipesched.schedule.timeline import Timeline
from solver.backends.exact_search import improve
from solver.engine.bound_search import refute
from solver.engine.meanwhile import improving_meanwhile
from solver.engine.search import Search
from solver.limits import Limits
from solver.local_search.units.operation_units import modes_matter

EXACT_MODEL = "CP-SAT"
_LEAST_SECONDS = 0.1


@dataclass(frozen=True)
class ExactModel:
    """A share of the time, for models of so many order literals; without `literals` it is plain intervals.

    CP-SAT is asked early where literals are few, since it is then likely to prove the optimum in seconds. What is left
    where it has proved whole ticks may be a fraction of one, which is refuted then.

    Where a gap of no more than `near` is left, it may be asked `from_below`: first for a schedule of the lower bound,
    on one core, while local search goes on on the others. Once, and not where modes are open: nothing was proved of
    these.
    """

    share: float = 1.0
    least_literals: int = 0
    most_literals: float = inf
    literals: bool = True
    job_shop: bool | None = None  # only of problems that are job shops, or only of others
    near: float = inf
    from_below: bool = False
    several_stages: bool = False  # only of spans where a device has several
    least_seconds: float = 0.0  # only where its share is as long
    name: str = EXACT_MODEL

    def applies(self, search: Search) -> bool:
        """Not where stating the model takes longer than the time that is left."""
        clock = search.clock
        short = clock.left(self.share) <= 0 or clock.allowed(self.share) < self.least_seconds
        if search.takes_long_to_state or short:
            return False
        another = self.job_shop is not None and self.job_shop != is_job_shop(search.problem)
        if another or (self.several_stages and not _has_several_stages(search.problem)):
            return False
        if self.from_below and (self.name in search.entered or modes_matter(search.problem)):
            return False
        state = search.incumbent.state
        if state.value is None or gap(state.value, state.lower_bound) > self.near:
            return False
        if not self.least_literals and self.most_literals == inf:
            return True
        return self.least_literals <= literal_count(search.problem) <= self.most_literals

    def run(self, search: Search) -> None:
        clock, incumbent = search.clock, search.incumbent
        seconds, state = clock.left(self.share), incumbent.state
        assert state.timeline is not None
        assert state.value is not None
        literals = MOST_LITERALS if self.literals else -1
        try:
            model = improving(search.problem, state.timeline, state.value, state.lower_bound, most_literals=literals)
        except TooLong as reason:
            incumbent.note(f"CP-SAT was not asked for a better schedule: {reason}")
            return

        def callback(timeline: Timeline | None, bound: Value) -> None:
            if timeline is not None:
                incumbent.offer(timeline)
            incumbent.claim(bound)

        # Stating a large model takes seconds of its own.
        left = max(_LEAST_SECONDS, min(seconds, clock.left()))
        with improving_meanwhile(search) if self.from_below else nullcontext():
            outcome = improve(model, self._limits(search), left, search.stop, callback, self.from_below)
        callback(outcome.timeline, outcome.bound)
        state = incumbent.state
        fraction = state.value is not None and state.value - state.lower_bound < 1
        if search.engine.raise_bounds and fraction and not search.done():
            refute(search, max(_LEAST_SECONDS, min(seconds, clock.left())))

    def _limits(self, search: Search) -> Limits:
        """From below: one core, and no more than its share of counted work."""
        limits = search.limits
        if not self.from_below:
            return limits
        work = None if limits.deterministic is None else self.share * limits.deterministic
        return replace(limits, workers=1, deterministic=work)


def _has_several_stages(problem: Problem) -> bool:
    """Whether a span is asked for and some device has several stages."""
    return problem.objective is Objective.SPAN and any(len(held) > 1 for held in problem.placement.stages_of)
