"""Subsolver: CP-SAT on the exact model of all passes, started from the incumbent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from formulations.variables.literals import TooLong
from pipesched.deadline import Deadline, within
from solver.backends.exact_search import improve
from solver.engine.improving_model import improving_model, take
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.parameters import tunable, tuned

EXACT_MODEL = "CP-SAT"


@dataclass(frozen=True)
@tunable
class ExactModel:
    """CP-SAT restarted in each slice from the incumbent; without `literals` orders are stated by intervals alone.

    A slice may take `extra_seconds` longer, to build a large model.
    """

    literals: bool = True
    extra_seconds: float = tuned(0.2, "s that a slice may take longer, to state a large model", 0, 10)
    name: str = EXACT_MODEL
    parallel: bool = True
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        """True if there is time to build the model."""
        return not search.takes_long_to_state

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
        model = improving_model(search, self.literals)
        left = max(self.extra_seconds, min(slice_.left(), search.clock.left()))
        outcome = improve(model, slice_.limits(search.limits), left, search.stop, partial(take, search))
        take(search, outcome.timeline, outcome.bound)
