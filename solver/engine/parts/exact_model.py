"""Part: CP-SAT on the exact model of all passes, started from the incumbent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from formulations.exact.exact_model import ExactModel as Model
from formulations.exact.exact_model import improving
from formulations.jobs.jobs import restricted_to_microbatch_order
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literals import TooLong
from formulations.variables.model_variables import MOST_LITERALS
from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import is_job_shop
from pipesched.schedule.timeline import Timeline
from solver.backends.exact_search import improve
from solver.backends.interruptible import run_within
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.tuning import GRACE, SHARE

EXACT_MODEL = "CP-SAT"


@dataclass(frozen=True)
class ExactModel:
    """Begun anew in each slice, from the best schedule by then; of a job shop, or without `literals`, the model is
    plain intervals.

    It may be asked `from_below`: first for a schedule of the lower bound, on one core. `in_order` keeps micro-batches
    in their order where activations may be offloaded or recomputed: many schedules fewer, which are often good ones,
    and no bound.
    """

    literals: bool = True
    from_below: bool = False
    in_order: bool = False
    name: str = EXACT_MODEL
    restarts: bool = True

    @property
    def parallel(self) -> bool:
        return not self.from_below

    def serves(self, search: Search) -> bool:
        """Not where stating the model takes longer than the time that is left."""
        return not search.takes_long_to_state and (not self.in_order or bool(search.problem.network.options))

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            try:
                # Stating a large model takes seconds of its own.
                run_within(slice_.left() + SHARE * GRACE, search.stop, partial(self._solve, search, slice_))
            except TooLong as reason:
                search.incumbent.note(f"CP-SAT was not asked for a better schedule: {reason}")
                return
            if not (search.clock.counts_work or slice_.over()):
                return

    def _solve(self, search: Search, slice_: Slice) -> None:
        incumbent, limits = search.incumbent, slice_.limits(search.limits)
        model = self._model(search)

        def callback(timeline: Timeline | None, bound: Value) -> None:
            if timeline is not None:
                incumbent.offer(timeline)
            if bound:
                incumbent.claim(bound)
                search.found_bound(bound)

        limits = replace(limits, workers=1) if self.from_below else limits
        left = max(SHARE * GRACE, min(slice_.left(), search.clock.left()))
        outcome = improve(model, limits, left, search.stop, callback, self.from_below)
        callback(outcome.timeline, outcome.bound)

    def _model(self, search: Search) -> Model:
        problem, state = search.problem, search.incumbent.state
        assert state.timeline is not None
        assert state.value is not None
        literals = -1 if is_job_shop(problem) or not self.literals else MOST_LITERALS
        if self.in_order:
            # A schedule known need not keep the order.
            return Model(
                restricted_to_microbatch_order(jobs_of(problem)), state.value, state.lower_bound, most_literals=literals
            )
        return improving(problem, state.timeline, state.value, state.lower_bound, most_literals=literals)
