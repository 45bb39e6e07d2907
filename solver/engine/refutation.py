"""Destructive lower bounds by CP-SAT within a slice: thresholds refuted since no schedule is as short."""

from __future__ import annotations

from pipesched.deadline import Deadline, within
from pipesched.problem.attainable_spans import Value, largest_denominator, least_above
from solver.backends.destructive_bound import RefutedValue, destructive_bounds
from solver.engine.search import Search
from solver.engine.slices import Slice


def refute(search: Search, slice_: Slice, by: str | None = None) -> bool:
    """Refute thresholds with CP-SAT within a slice; False if none was left to try before the slice was over.

    `by` is the name under which results are reported, by default the current subsolver.
    """

    def open_() -> tuple[Value, Value]:
        """The lower bound by now, and the value below which a schedule is of interest."""
        state, target = search.incumbent.state, search.limits.target
        assert state.value is not None
        if target is None:
            return state.lower_bound, state.value
        return state.lower_bound, min(state.value, least_above(target, largest_denominator(search.problem)))

    every = fraction_left(search)
    seconds = min(slice_.left(), search.clock.left())
    found = destructive_bounds(search.problem, slice_.limits(search.limits), seconds, open_, search.stop, every=every)
    while not search.done():
        one = within(Deadline.after(slice_.left(), search.stop), lambda: next(found, None))
        if one is None:
            break
        if isinstance(one, RefutedValue):
            search.incumbent.claim(one.value, one.devices, by)
        else:
            search.offer_order(one, by)
    return search.clock.counts_work or slice_.over()


def fraction_left(search: Search) -> bool:
    """True if bound and value differ by less than a tick, which is left to the model of all devices in finer ticks."""
    state = search.incumbent.state
    return state.value is not None and state.value - state.lower_bound < 1
