"""Subsolver: CP-SAT on the exact model of all passes, started from the incumbent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from formulations.exact.exact_model import ExactModel as Model
from formulations.jobs.jobs import restricted_to_microbatch_order
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.literals import TooLong
from pipesched.deadline import Deadline, within
from solver.backends.exact_search import improve
from solver.engine.improving_model import improving_model, most_literals, take
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned

EXACT_MODEL = "CP-SAT"


@dataclass(frozen=True)
@tunable
class ExactModel:
    """CP-SAT restarted in each slice from the incumbent; without `literals` orders are stated by intervals alone.

    With `in_order`, for problems with activations that may be offloaded or recomputed, micro-batches keep their order
    in every kind of pass that each of them runs: these are far fewer schedules, often good ones, but they give no
    bound.
    """

    literals: bool = True
    in_order: bool = False
    extra_seconds: float = tuned(0.2, "s that a slice may take longer, to state a large model", 0, 10)
    name: str = EXACT_MODEL
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        """True if there is time to build the model; with `in_order` only for problems with activation modes."""
        return not search.takes_long_to_state and (not self.in_order or search.problem.network.has_activation_modes)

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            try:
                # Stating a large model takes seconds of its own.
                within(
                    Deadline.after(slice_.left() + self.extra_seconds, search.stop),
                    partial(self._solve, search, slice_),
                )
            except TooLong as reason:
                search.incumbent.note(f"CP-SAT was not asked for a better schedule: {reason}")
                return
            if not (search.clock.counts_work or slice_.over()):
                return

    def _solve(self, search: Search, slice_: Slice) -> None:
        model = self._in_order(search) if self.in_order else improving_model(search, self.literals)
        left = max(self.extra_seconds, min(slice_.left(), search.clock.left()))
        outcome = improve(model, slice_.limits(search.limits), left, search.stop, partial(take, search))
        take(search, outcome.timeline, outcome.bound)

    def _in_order(self, search: Search) -> Model:
        """Return the model with micro-batches in order, without a hint, since a known schedule may be out of order."""
        state, jobs = search.incumbent.state, restricted_to_microbatch_order(jobs_of(search.problem))
        assert state.value is not None
        literals = most_literals(search.problem, self.literals)
        return Model(jobs, state.value, state.lower_bound, most_literals=literals)
