"""Destructive lower bounds by CP-SAT within a slice: a threshold is refuted if no schedule has a value up to it."""

from __future__ import annotations

from pipesched.deadline import Deadline, within
from pipesched.problem.attainable_spans import Value, largest_denominator, least_above
from solver.backends.destructive_bound import RefutedValue, destructive_bounds
from solver.engine.search import Search
from solver.engine.slices import Slice


def refute(search: Search, slice_: Slice, by: str | None = None) -> bool:
    """Ask CP-SAT for schedules up to thresholds between lower bound and incumbent, until the slice is over.

    There must be an incumbent. The next attainable value above a refuted threshold becomes the lower bound, a schedule
    found is offered. `by` is the name of the finder in reports, by default the current phase. Returns False if it ended
    before the slice, since nothing was left to try or the search is done; where work is counted always True.
    """

    def open_() -> tuple[Value, Value]:
        """Return the lower bound and the least value that is no longer of interest, in ticks.

        The latter is the incumbent's value, or if that is lower the least attainable value above the target.
        """
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
    """True if the incumbent's value is less than one tick above the lower bound; False also without an incumbent.

    Only the exact model of all devices, in fractions of a tick, can close such a gap.
    """
    state = search.incumbent.state
    return state.value is not None and state.value - state.lower_bound < 1
