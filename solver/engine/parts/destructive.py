"""Part: destructive lower bounds, where CP-SAT refutes a value on some devices, or on all."""

from __future__ import annotations

from dataclasses import dataclass

from pipesched.problem.attainable_spans import Value, largest_denominator, least_above
from solver.backends.destructive_bound import RefutedValue, destructive_bounds
from solver.backends.interruptible import run_within
from solver.engine.kernels import Kernels
from solver.engine.search import Search
from solver.engine.slices import Slice, Work


@dataclass(frozen=True)
class DestructiveBounds:
    """Higher values after those refuted; a schedule where all devices together turn out to have one."""

    name: str = "destructive bounds"
    parallel: bool = False
    restarts: bool = True

    def serves(self, search: Search) -> bool:
        return search.engine.raise_bounds

    def kernels(self, _: Search) -> Kernels | None:
        return None

    def work(self, search: Search) -> Work:
        while True:
            slice_ = yield
            if not _refute(search, slice_):
                return


def _refute(search: Search, slice_: Slice) -> bool:
    """Whether more time may refute more: it does not where nothing was left to ask before the time was over."""

    def open_() -> tuple[Value, Value]:
        """The lower bound by now, and the value below which a schedule is of interest."""
        state, target = search.incumbent.state, search.limits.target
        assert state.value is not None
        if target is None:
            return state.lower_bound, state.value
        return state.lower_bound, min(state.value, least_above(target, largest_denominator(search.problem)))

    # A fraction of a tick is left to what asks for all devices at once.
    low, value = search.incumbent.state.lower_bound, search.incumbent.state.value
    every = value is not None and value - low < 1
    seconds = min(slice_.left(), search.clock.left())
    found = destructive_bounds(search.problem, slice_.limits(search.limits), seconds, open_, search.stop, every=every)
    # On a thread of its own, and one step after the other, so that signals are heard and counted work stays the same.
    while not search.done():
        one = run_within(slice_.left(), search.stop, lambda: next(found, None))
        if one is None:
            break
        if isinstance(one, RefutedValue):
            search.incumbent.claim(one.value, one.devices)
        else:
            search.offer_order(one)
    return search.clock.counts_work or slice_.over()
