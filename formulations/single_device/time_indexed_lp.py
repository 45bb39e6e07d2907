"""The time-indexed linear program of one device, whose dual values are the Lagrangian multipliers.

Micro-batches are a flow through the device: how many have begun each pass by each of equally spaced instants (a
time-indexed formulation, as in Sousa and Wolsey, Mathematical Programming 54, 1992). It asks how many can come and go
within a time. Its dual values are approximate: what they prove is computed exactly elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from ortools.linear_solver.python import model_builder

from formulations.single_device.visits import OneDevice, Trip

# How many have begun a pass by an instant: a variable, and what it counts for; None before the first can have.
_Begun = tuple[model_builder.Variable, float] | None

_TRACE = 1e-9


class _Flow(NamedTuple):
    """How many have begun a pass: none before instant `first`, all from instant `last` on, variables between."""

    first: int
    last: int
    between: list[model_builder.Variable]
    all: tuple[model_builder.Variable, float]

    def begun(self, instant: int) -> _Begun:
        if instant < self.first:
            return None
        return self.all if instant >= self.last else (self.between[instant - self.first], 1.0)


class TimeIndexed:
    """The program for one device with an instant every `step` ticks until `until`. Durations are rounded down to steps.

    `running[i]` and `holding[i]` are its rows for instant i: at most one pass runs, and the memory held fits.
    """

    def __init__(self, device: OneDevice, until: int, step: int) -> None:
        self.device, self.until, self.step = device, until, step
        self.model = model_builder.Model()  # type: ignore[no-untyped-call]
        self.instants = range(0, until + 1, step)
        # How many micro-batches can come and go; each trip has its part of them.
        self.many = self.model.new_num_var(0, inf, "many")
        self._all = sum(trip.microbatches for trip in device.trips)
        self._running: list[list[tuple[_Begun, float]]] = [[] for _ in self.instants]
        self._holding: list[list[tuple[_Begun, float]]] = [[] for _ in self.instants]
        for trip in device.trips:
            self._state(trip)
        self.running = [self._row(terms, 1) for terms in self._running]
        # Memory is counted in capacities, so that rows are of one size.
        self.holding = [self._row(terms, 1) for terms in self._holding] if device.capacity else []
        self.model.helper.set_var_objective_coefficient(self.many.index, 1)
        self.model.helper.set_maximize(True)

    def _state(self, trip: Trip) -> None:
        """Each visit after the one before it, and what it puts off after the visit."""
        before: tuple[_Flow, int] | None = None
        for visit in trip.visits:
            flow = self._flow(visit.earliest, visit.latest(self.until), trip.microbatches, before)
            self._use(flow, visit.ticks, visit.takes, visit.gives)
            if visit.later is not None:
                latest = self.device.latest(visit.later, self.until)
                put_off = self._flow(visit.earliest + visit.ticks, latest, trip.microbatches, (flow, visit.ticks))
                self._use(put_off, visit.later.ticks, 0, visit.later.gives)
            before = flow, visit.ticks + visit.away

    def _flow(self, earliest: int, latest: int | None, count: int, before: tuple[_Flow, int] | None) -> _Flow:
        """A pass that starts in the window, and so long after the start of another one; of all, `count` run it."""
        first = -(-earliest // self.step)
        end = len(self.instants)
        last = end if latest is None else min(end, max(first, -(-latest // self.step)))
        between = [self.model.new_num_var(0, inf, "") for _ in range(first, last)]
        flow = _Flow(first, last, between, (self.many, count / self._all))
        for instant in range(first + 1, last + 1):
            self._row([(flow.begun(instant - 1), 1.0), (flow.begun(instant), -1.0)], 0)
        if before is not None:
            other, ticks = before
            lag = ticks // self.step
            for instant in range(first, min(last, other.last + lag) + 1):
                self._row([(flow.begun(instant), 1.0), (other.begun(instant - lag), -1.0)], 0)
        return flow

    def _use(self, flow: _Flow, ticks: int, takes: int, gives: int) -> None:
        """The device's time and memory."""
        steps = ticks // self.step
        for instant, terms in enumerate(self._running):
            terms += [(flow.begun(instant), 1.0), (flow.begun(instant - steps), -1.0)]
        if not self.device.capacity:
            return
        for instant, terms in enumerate(self._holding):
            terms.append((flow.begun(instant), takes / self.device.capacity))
            terms.append((flow.begun(instant - steps), -gives / self.device.capacity))

    def _row(self, terms: Sequence[tuple[_Begun, float]], most: float) -> int:
        """The sum of the terms is at most so much; the number of the row."""
        helper = self.model.helper
        row: int = helper.add_linear_constraint()
        helper.set_constraint_lower_bound(row, -inf)
        helper.set_constraint_upper_bound(row, most)
        factors: dict[int, float] = {}
        for begun, factor in terms:
            if begun is not None:
                index = begun[0].index
                factors[index] = factors.get(index, 0.0) + begun[1] * factor
        for index, factor in factors.items():
            # What should cancel may leave a trace, and solvers scale rows by their smallest factor.
            if abs(factor) > _TRACE:
                helper.set_constraint_coefficient(row, index, factor)
        return row
