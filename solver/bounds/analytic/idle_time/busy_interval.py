"""Busy intervals: the least time from a device's first pass to the end of its last gradient, in closed form.

A device can postpone only as much work as its memory allows. When its last gradient ends, only weight passes are left;
when its last forward ends, only passes whose activations are in memory are, and that micro-batch's gradients arrive a
round trip later.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from pipesched.problem.attainable_spans import Value, largest_denominator, simplest
from pipesched.problem.formatting import amount, memory_text
from pipesched.problem.passes import W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MemoryTicks, StageId, Ticks
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time.idle_gaps import forced_apart, forced_round_trips, head_gap, waiting_in_memory
from solver.bounds.analytic.idle_time.knapsack import most_value
from solver.bounds.analytic.idle_time.memory_energy import area, area_left_at_last_forward, unused_at_first


class BusyInterval(NamedTuple):
    """Least ticks from a device's first pass to the end of one of its gradients, and sentences that prove them."""

    ticks: Value
    text: str


class BusyIntervals:
    """Lower bounds on the busy intervals of one device, from its first pass to the end of a gradient pass.

    `chains` are the device's stages, a list for each chain in chain order. `work` is the least ticks of all its passes,
    `capacity` its memory in steps (None: unlimited), and `apart` is True if that cannot have all its activations at
    once. `idle` is the idle time in ticks before the first backward; the caller may replace it by a sharper value. The
    device must run passes.
    """

    def __init__(self, problem: Problem, paths: Paths, device: DeviceId, chains: list[list[StageId]]) -> None:
        self.problem, self.paths, self.view, self.chains = problem, paths, paths.view, chains
        self.stages = [stage for chain in chains for stage in chain]
        self.capacity = self.view.room[device]
        self.work = paths.work(device)
        self.device, self.apart = device, forced_apart(self.view, device, chains)
        self.idle = head_gap(paths, device, chains, spare=int(self.apart)).idle
        self.forced_round_trips = forced_round_trips(paths, device, chains)
        self.computes = f"It computes {self._say(self.work)} in all"

    def to_last_gradient(self) -> BusyInterval:
        """Return the strongest bound on the interval from the device's first pass to the end of its last gradient."""
        return _longest(self._by_work(), self._by_memory())

    def to_gradient_of_last_forward(self, last: list[StageId]) -> BusyInterval:
        """Return the strongest bound on the interval that ends with the gradient of the last forward's micro-batch.

        `last` are the stages on the device of the chain that this micro-batch traverses; the interval ends with its
        gradient pass on the first of them.
        """
        return _longest(self._by_work_after_last_forward(last), self._by_memory_after_last_forward(last))

    def _by_work(self) -> BusyInterval:
        """Return a lower bound, by its work, on the ticks from the device's first pass to the end of its last gradient.

        It is the work that cannot be later than that gradient, plus the idle time that is unavoidable. Weight passes
        alone can be later, as many as memory has room for. Idle are the wait before the first backward, and later round
        trips that memory puts one after the other.
        """
        paths = self.paths
        put_off = most_value([(work, size, n) for work, size, n in self._weights()], self.capacity)
        needed = 0
        if not self.view.blocks:
            needed = sum((paths.forward[s] + paths.gradient[s]) * n for s, n in self._counts())
        before = max(self.work - put_off, needed)
        # The last of consecutive round trips ends before the last gradient, or with it.
        later = self._idle_between(self.forced_round_trips.trips + 1)
        ticks = before + self.idle + later
        late = f"weight passes of {self._say(self.work - before)} at most" if self.work > before else "nothing"
        text = (
            f"{self.computes}, of which {late} may come after its last gradient{self._idling(self.idle, later)}: that "
            f"gradient ends {self._say(ticks)} later or after that."
        )
        return BusyInterval(ticks, text)

    def _by_work_after_last_forward(self, last: list[StageId]) -> BusyInterval:
        """Bound the interval by the work that is done by the last forward's end, idle time, and a round trip.

        Work must be done by then if memory cannot have it left. The round trip takes the micro-batch of that forward,
        of the chain with stages `last` here, to the last stage and back.
        """
        # If a backward runs before the last forward, so does the idle time at the head.
        idle = self.idle if self.apart else 0
        later = self._idle_between(self.forced_round_trips.trips)
        own = sum(map(self.view.least_backward, last))
        waiting = own + waiting_in_memory(self.view, self.device, self.chains, last)
        ticks = self.work - waiting + idle + later + self._round_trip(last)
        text = (
            f"{self.computes}, of which {self._say(waiting)} at most can wait in memory when its last forward "
            f"ends{self._idling(idle, later)}. {self._from_there(last, ticks)}"
        )
        return BusyInterval(ticks, text)

    def _by_memory(self) -> BusyInterval | None:
        """Bound the interval to the last gradient by memory times time of all activations, divided by the capacity.

        What weight passes after the last gradient occupy is left out. None if memory is unlimited or gradients take
        memory.
        """
        capacity = self._capacity_that_counts
        if not capacity:
            return None
        put_off = most_value([(work * size, size, n) for work, size, n in self._weights()], capacity)
        ticks = self._at_capacity(capacity, self._taken() - put_off)
        text = f"{self._over_time(capacity, ticks)}, leaving out weight passes after its last gradient."
        return BusyInterval(ticks, text)

    def _by_memory_after_last_forward(self, last: list[StageId]) -> BusyInterval | None:
        """Bound the interval by memory times time to the last forward's end, over the capacity, plus a round trip.

        The round trip is that of the micro-batch of this forward, of the chain with stages `last` here, to the last
        stage and back. None if memory is unlimited or gradients take memory.
        """
        capacity = self._capacity_that_counts
        if not capacity:
            return None
        later = area_left_at_last_forward(self.paths, self.stages, capacity)
        before = self._at_capacity(capacity, self._taken() - later)
        ticks = before + self._round_trip(last)
        text = (
            f"{self._over_time(capacity, before)} and leaving out what those take later that are held when its last "
            f"forward ends. {self._from_there(last, ticks)}"
        )
        return BusyInterval(ticks, text)

    @property
    def _capacity_that_counts(self) -> MemorySteps | None:
        """Capacity of the device.

        None if unlimited, or if some B takes more memory than it frees, which is not covered.
        """
        return self.capacity if min(map(self.view.freed_by_backward, self.stages)) >= 0 else None

    def _at_capacity(self, capacity: MemorySteps, taken: Fraction | MemoryTicks) -> Value:
        """Return the least ticks in which memory of `capacity` provides `taken`, a product of memory and ticks.

        Forwards alone fill the memory at first, which leaves some unused. Rounded up to whole ticks where the optimal
        value is whole.
        """
        lost = unused_at_first(self.paths, self.stages, capacity, taken)
        ticks = max(Fraction(0), Fraction(taken + lost) / capacity)
        return ceil(ticks) if largest_denominator(self.problem) == 1 else simplest(ticks)

    def _taken(self) -> int:
        return sum(area(self.paths, s) * n for s, n in self._counts())

    def _round_trip(self, last: list[StageId]) -> Ticks:
        """Return the least ticks from the end of a forward on the last stage of `last` to its micro-batch's return.

        That is the end of the micro-batch's gradient pass on the first stage of `last`, the device's stages of one
        chain.
        """
        paths = self.paths
        return paths.round_trip[last[-1]] + paths.gradient[last[-1]] + paths.back[last[-1]] - paths.back[last[0]]

    def _counts(self) -> Sequence[tuple[int, int]]:
        return [(s, len(self.view.microbatches_of[s])) for s in self.stages]

    def _weights(self) -> Sequence[tuple[Ticks, MemorySteps, int]]:
        """Return for each stage of the device its weight passes.

        They are (ticks, memory that one occupies until it ends, number). Empty where backwards are never split.
        """
        counts = self._counts() if self.view.splits else ()
        return [(self.view.ticks[W, s], self.view.memory_until_weight[s], n) for s, n in counts]

    def _say(self, ticks: Value) -> str:
        return amount(self.problem, ticks)

    def _idle_between(self, count: int) -> Ticks:
        """Return the idle ticks of the device in `count` consecutive round trips after the first.

        0 if memory forces none.
        """
        return count * self.forced_round_trips.gap.idle

    def _idling(self, idle: Ticks, later: int) -> str:
        parts = [f"{self._say(idle)} before its first backward, since memory is full"] if idle else []
        if later:
            parts.append(
                f"{self._say(later)} in later waits for the pipeline's latency, which memory puts one after the other"
            )
        return f", and idles {' and '.join(parts)}" if parts else ""

    def _over_time(self, capacity: MemorySteps, ticks: Value) -> str:
        return (
            f"Its activations take memory from forward to backward. Its {memory_text(self.problem, capacity)} "
            f"give enough of it over time in {self._say(ticks)} at least, counting that forwards "
            "fill it one by one"
        )

    def _from_there(self, last: list[StageId], ticks: Value) -> str:
        trip = self._say(self._round_trip(last))
        return (
            f"From there that micro-batch takes {trip} to the last stage and back through this device: "
            f"{self._say(ticks)}."
        )


def _longest(one: BusyInterval, other: BusyInterval | None) -> BusyInterval:
    return other if other is not None and other.ticks > one.ticks else one
