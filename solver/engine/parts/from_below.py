"""Part: CP-SAT on the exact model, asked for a schedule of the lower bound first, then of more and more.

Each conflict with a value says how much more a schedule takes, and what was learnt of one value refutes the next ones
in a moment. So a search that was stopped loses nearly all: it waits between slices where it reports a bound, and goes
on there. One that reports none in twice the time of its slice, nor in some times what stating its model took, is ended,
and begins anew in the next one, from what is proved by then. The first report takes 4 to 7 times as long as stating on
lines of 16 and 17 devices.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from threading import Event

from formulations.variables.literal_count import literal_count
from formulations.variables.literals import TooLong
from formulations.variables.model_variables import MOST_LITERALS
from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import is_job_shop
from pipesched.schedule.timeline import Timeline
from solver.backends.exact_search import Callback, improve
from solver.backends.interruptible import run_within
from solver.backends.paced import Paced
from solver.engine.exact_model import model_below, take
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work
from solver.limits import Limits
from solver.tuning import LITTLE, SHARE


@dataclass(frozen=True)
class FromBelow:
    """On one core, as the bounds of all devices are."""

    name: str = "CP-SAT from the bound up"
    parallel: bool = False
    restarts: bool = False

    def serves(self, search: Search) -> bool:
        """Only of models with order literals: without them nothing is learnt that refutes another value."""
        problem = search.problem
        if search.takes_long_to_state or is_job_shop(problem):
            return False
        return literal_count(problem, range(problem.devices)) <= MOST_LITERALS

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        slice_: Slice | None = yield
        try:
            while slice_ is not None:
                if search.clock.counts_work:
                    _improve(search, slice_.limits(search.limits), search.stop, partial(take, search))
                    slice_ = yield
                else:
                    slice_ = yield from _from_what_is_proved(search, slice_)
        except TooLong as reason:
            search.incumbent.note(f"CP-SAT was not asked for a schedule of the lower bound: {reason}")


def _from_what_is_proved(search: Search, slice_: Slice) -> Generator[None, Slice, Slice | None]:
    """By now, slice after slice, until others have proved more: the slice to begin anew in, or None at the end."""
    clock, reached, stated = search.clock, search.incumbent.lower_bound, inf
    began = clock.seconds

    def callback(timeline: Timeline | None, bound: Value) -> None:
        nonlocal reached, stated
        stated = min(stated, clock.seconds - began)
        take(search, timeline, bound)
        reached = search.incumbent.lower_bound  # which may be more, as no value between is attained
        paced.is_set()

    def late() -> bool:
        return clock.seconds > slice_.began + max(2 * slice_.seconds, min(stated / LITTLE, clock.share(SHARE)))

    paced = Paced(search.stop, lambda _: _improve(search, search.limits, paced.at_once, callback))
    try:
        while paced.run(slice_.over, late):
            if paced.ended:
                return None
            slice_ = yield
            if search.incumbent.lower_bound > reached:
                return slice_
    finally:
        paced.close()
    return (yield)


def _improve(search: Search, limits: Limits, stop: Event, callback: Callback) -> None:
    """With what is left of the time to state the model, and to search."""
    model = run_within(search.clock.left(), stop, partial(model_below, search))
    if model is not None:
        limits = replace(limits, workers=1)
        outcome = improve(model, limits, search.clock.left(), stop, callback, from_below=True)
        callback(outcome.timeline, outcome.bound)
