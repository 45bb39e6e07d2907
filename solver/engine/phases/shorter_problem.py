"""Phase for very long problems: a shorter one is searched, and what it repeats in its middle is repeated more often.

What improves the one improves every repetition, and the search does not grow with the number of micro-batches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from pipesched.problem.problem import Problem
from pipesched.results.solution import Progress
from solver.backends.interruptible import run_within
from solver.cyclic.replication import best_stretch, repeated_note, shortened
from solver.engine.search import Phase, Search
from solver.engine.tuning import GRACE


@dataclass(frozen=True)
class ShorterProblem:
    """The shorter search opens with `opening`. Of the time it leaves what handing over its schedule takes, amply."""

    opening: tuple[Phase, ...]
    seconds_a_pass: float = 5e-6
    name: str = "a shorter problem"

    def applies(self, search: Search) -> bool:
        # Unequal micro-batches repeat nothing.
        if search.chains is not None or search.done() or not search.very_long or search.clock.allowed() <= 0:
            return False
        return shortened(search.problem) is not None

    def run(self, search: Search) -> None:
        """A very long problem that has a schedule by then needs no other phase."""
        short, before, left = shortened(search.problem), search.incumbent.timeline, search.clock.left()
        assert short is not None
        _Replication(search, short, max(0.0, left / 2, left - search.passes * self.seconds_a_pass), self.opening).run()
        if search.incumbent.timeline is not before:
            search.incumbent.note(repeated_note(short))
        if search.incumbent.timeline is not None:
            search.end()


class _Replication:
    """The search of the shorter problem, observed: the whole one is offered what can be repeated more often."""

    def __init__(self, whole: Search, short: Problem, seconds: float, opening: tuple[Phase, ...]) -> None:
        self._whole, self._name = whole, f"{short.microbatches} micro-batches"
        self._value: Fraction | None = None
        self._not_before = 0.0
        # What is proved of the shorter problem proves nothing of the whole one.
        engine = replace(whole.engine, opening=opening, raise_bounds=False)
        limits = replace(whole.limits, seconds=seconds, target=None)
        self._short = Search(short, limits, self._observe, whole.stop, engine, whole.done)

    def run(self) -> None:
        self._short.run()
        if not self._whole.done() or self._whole.stop.is_set():
            run_within(max(GRACE, self._whole.clock.allowed()), Event(), self._hand_over)

    def _observe(self, moment: Progress) -> None:
        """Improvements come often and handing over takes time, so that each waits until the time has doubled."""
        self._whole.incumbent.enter(f"{self._name}: {moment.phase}")
        seconds = self._short.clock.seconds
        if self._short.incumbent.timeline is not None and seconds >= self._not_before:
            self._hand_over()
            self._not_before = 2 * self._short.clock.seconds

    def _hand_over(self) -> None:
        """What gives most when repeated: the best schedule may have nothing that it repeats any more."""
        best = self._short.incumbent.timeline
        stretch = best_stretch([*([] if best is None else [best]), *self._short.starts()])
        if stretch is not None and (self._value is None or stretch.value < self._value):
            self._whole.offer_order(stretch.over(self._whole.problem))
            # Only now: where the offer is ended by the time limit, the same schedule is offered again at the end.
            self._value = stretch.value
