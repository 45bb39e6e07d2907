"""Long problems: a shorter one is searched, and what it repeats in its middle is repeated more often.

What improves the one improves every repetition, and the search does not grow with the number of micro-batches.
"""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem import Problem
from pipesched.solution import Progress
from solver.limits import Limits
from solver.search import MANY_PASSES, Search
from solver.stretching import best_stretch, shortened

# What stretching a schedule takes with its times and its judgement, amply.
_STRETCH_SECONDS_A_PASS = 2e-5


def by_shorter(search: Search) -> None:
    """Give the search of a long problem what a shorter one finds; nothing where the problem is not long."""
    short = shortened(search.problem)
    if search.passes > MANY_PASSES and short is not None:
        seconds = max(search.left() / 2, search.left() - search.passes * _STRETCH_SECONDS_A_PASS)
        _Shorter(search, short, replace(search.limits, seconds=seconds, target=None)).run()
        if search.best is not None:
            search.notes.append(
                f"this is a schedule of {short.microbatches} micro-batches with its middle repeated; published "
                "schedules were tried on those, and not on all"
            )


class _Shorter(Search):
    """The search for a shorter problem on behalf of the whole one, to which it hands over what can be stretched."""

    def __init__(self, whole: Search, problem: Problem, limits: Limits) -> None:
        self.whole = whole
        self.stretched_value: int | None = None
        self.not_before = 0.0
        # What is proved of the shorter problem proves nothing of the whole one.
        super().__init__(problem, limits, self.hear_moment, whole.stop, replace(whole.parts, relaxation=False))
        self.whole_table = False

    def run(self) -> None:
        super().run()
        if not self.whole.done() or self.stop.is_set():
            self.hand_over()

    def done(self) -> bool:
        return super().done() or self.whole.done()

    def hear_moment(self, moment: Progress) -> None:
        """Improvements come often and stretching takes time, so that each waits until the time has doubled."""
        self.whole.doing = f"{self.problem.microbatches} micro-batches: {moment.doing}"
        self.whole.tell()
        if self.best is not None and self.seconds >= self.not_before:
            self.hand_over()
            self.not_before = 2 * self.seconds

    def hand_over(self) -> None:
        """What gives most when stretched: the best schedule may have nothing that it repeats any more."""
        timelines = [*([] if self.best is None else [self.best]), *self.others()]
        stretch = best_stretch(timelines)
        if stretch is not None and (self.stretched_value is None or stretch.value < self.stretched_value):
            self.stretched_value = stretch.value
            self.whole.offer_order(stretch.over(self.whole.problem))
