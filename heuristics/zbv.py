"""ZBV: zero bubble in the memory of 1F1B, by a search over a V of stages; weight passes fill the bubbles.

Section 6 of arXiv 2401.10241. A micro-batch traverses four legs over the devices: forward down and up, backward down
and up. Forwards fill the wait for the first gradient; then a round is one backward and one forward on every device, the
legs up before the legs down, with weight passes where a device would wait or where memory runs out. Unlike the blocks
of the V family, its order depends on the times.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from heuristics.building.growing_orders import GrowingOrders
from heuristics.building.requirements import equal_costs, split_backward, v_of_stages
from heuristics.building.v_blocks import B_DOWN, B_UP, F_DOWN, F_UP, LEGS, Leg, on_leg
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from pipesched.deadline import ask
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.schedule.schedule import Schedule, schedule_of

# By device and leg: the device and leg of each predecessor, and the lag from it.
Needs = list[list[list[tuple[DeviceId, Leg, Ticks]]]]


class Choices(NamedTuple):
    """Two yes/no choices of a variant: the passes before which a W also fills a wait that is shorter than the W.

    `before_backward_down`: before backwards on the V's leg down; `before_forward`: before forwards. A W does so only on
    devices that can afford the delay.
    """

    before_backward_down: bool
    before_forward: bool


def zbv(problem: Problem) -> Schedule:
    """Return the best of four variants, by the problem's objective, with room for 2p chunk activations per device.

    A variant runs again as long as it gets better; the idle time that each device had in the run before then says how
    long its weight passes may delay others. Raises `DoesNotApply` unless backwards split and device d has stages d and
    2p-1-d.
    """
    split_backward(problem)
    v_of_stages(problem)

    def value(search: _Search) -> Ticks:
        return search.built.value(problem.objective)

    needs = _needs(problem)
    found: list[_Search] = []
    for flags in product((True, False), repeat=2):
        allowed = [0] * problem.devices
        variant: list[_Search] = []
        while len(variant) < 2 or value(variant[-1]) < value(variant[-2]):
            variant.append(_Search(problem, 2 * problem.devices, Choices(*flags), allowed, needs))
            variant[-1].run()
            allowed = variant[-1].built.waited
        found += variant
    return schedule_of(min(found, key=value).built.orders, "zbv")


def _needs(problem: Problem) -> Needs:
    p, legs = problem.devices, LEGS
    place_of = {on_leg(p, leg, device, 0): (device, leg) for leg in legs for device in range(p)}
    before = problem.network.predecessors
    return [[[(*place_of[q], lag) for q, lag in before(on_leg(p, leg, d, 0), ())] for leg in legs] for d in range(p)]


class _Search:
    """One variant of the search for ZB-V's order, which `run` builds round by round.

    The argument `room` is the most activations of one chunk on a device; the field `room`, `memory_in_use` and `freed`
    count parts, of which an activation has `whole`. Lists are by device: `allowed` is the idle time in ticks of the run
    before, `done[d][leg]` the number of passes so far, `ends[d][leg]` their ends in ticks, `weights[d]` the weight
    passes whose B has run.
    """

    def __init__(self, problem: Problem, room: int, choices: Choices, allowed: list[Ticks], needs: Needs) -> None:
        self.problem, self.places, self.choices, self.allowed, self.needs = problem, room, choices, allowed, needs
        self.p, self.m = problem.devices, problem.microbatches
        # The share of an activation that B frees, taken as equal on all stages, so that no device runs out of memory
        # alone. Stages without activations are left out.
        amounts = zip(problem.network.freed_by_backward, problem.network.memory_in_flight, strict=True)
        shares = [Fraction(freed, activation) for freed, activation in amounts if activation]
        freed = max(Fraction(0), min(shares, default=Fraction(0)))
        # In parts of an activation, so that memory is counted in whole numbers.
        self.whole, self.freed, self.room = freed.denominator, freed.numerator, room * freed.denominator
        self.built = GrowingOrders(self.p)
        self.free_at, self.waited = self.built.free_at, self.built.waited
        self.done = [[0, 0, 0, 0] for _ in range(self.p)]  # passes of each leg
        self.ends: list[list[list[int]]] = [[[] for _ in LEGS] for _ in range(self.p)]  # when those of each leg end
        self.weights: list[deque[Pass]] = [deque() for _ in range(self.p)]  # whose B has run
        self.memory_in_use = [0] * self.p  # by device, after all that was put on it

    def run(self) -> None:
        self._fill_the_wait_for_the_first_gradient()
        self._even_out_forwards()
        while any(done[B_UP] < self.m for done in self.done):
            ask()
            self._backwards()
            self._forwards()
        for d, weights in enumerate(self.weights):
            while weights:
                self._put(d, weights.popleft())

    def _fill_the_wait_for_the_first_gradient(self) -> None:
        """Run the first micro-batch's forwards down and up the devices, and other forwards while a device waits for it.

        Before device d runs it on the leg up, more micro-batches run forwards down to that device, as far as time and
        memory allow.
        """
        for d in range(self.p):
            self._walk(d, F_DOWN)
        for d in reversed(range(self.p)):
            taken = (2 + 2 * d) * self.whole
            while d < self.p - 1 and self.done[d][F_DOWN] < self.m and self.memory_in_use[d] + taken <= self.room:
                if self.free_at[d] + self.problem.duration(self._next(d, F_DOWN)) > self._arrival(d, F_UP):
                    break
                for above in range(d + 1):
                    self._walk(above, F_DOWN)
            self._walk(d, F_UP)

    def _even_out_forwards(self) -> None:
        """Run more forwards, legs down and up in turn, until each device has as many as the one before it."""
        leg = F_DOWN
        for d in range(1, self.p):
            idle_legs = 0
            while self._lacks_forwards(d) and idle_legs < 2:
                idle_legs += 1
                for device in reversed(range(d, self.p)):  # one by one: a leg up is ready once it ran below
                    if self._ready(device, leg) and self._fits(device, leg):
                        self._walk(device, leg)
                        idle_legs = 0
                leg = F_UP if leg == F_DOWN else F_DOWN

    def _lacks_forwards(self, d: DeviceId) -> bool:
        (down, up), (above_down, above_up) = self.done[d][:2], self.done[d - 1][:2]
        return down + up < above_down + above_up or up <= above_up < self.m

    def _backwards(self) -> None:
        """Run the next backward on every device, on the leg up if a gradient waits there, else on the leg down."""
        up = [self._up_is_next(d) for d in range(self.p)]
        turns = [(d, B_UP) for d in reversed(range(self.p)) if up[d]]
        turns += [(d, B_DOWN) for d in range(self.p) if not up[d]]
        for d, leg in turns:
            if self._ready(d, leg):
                self._fill_wait(d, leg, small=leg == B_UP or self.choices.before_backward_down)
                self._walk(d, leg)

    def _up_is_next(self, d: DeviceId) -> bool:
        done = self.done[d]
        if done[B_UP] == done[B_DOWN]:
            return False
        return d == self.p - 1 or done[B_DOWN] == self.m or done[B_UP] < self.done[d + 1][B_UP]

    def _forwards(self) -> None:
        """Run the next forward on every device, on the leg up if possible, after weight passes that free its memory."""
        for d in range(self.p):
            leg = next((leg for leg in (F_UP, F_DOWN) if self._ready(d, leg)), None)
            if leg is None:
                continue
            while self.weights[d] and not self._fits(d, leg):
                self._put(d, self.weights[d].popleft())
            if self._fits(d, leg):
                self._fill_wait(d, leg, small=self.choices.before_forward)
                self._walk(d, leg)

    def _fits(self, d: DeviceId, leg: Leg) -> bool:
        """True if device `d` has room for one more forward on this leg.

        One place is never used by forwards whose micro-batch has yet to return up, since these would wait for each
        other.
        """
        down_only = self.done[d][F_DOWN] - self.done[d][F_UP]
        return self.memory_in_use[d] + self.whole <= self.room and (leg == F_UP or down_only + 1 < self.places)

    def _fill_wait(self, d: DeviceId, leg: Leg, small: bool) -> None:
        """Run weight passes while device `d` would wait for its next pass on this leg.

        With `small`, also one that is too long for the wait, if the device can afford the delay.
        """
        weights = self.weights[d]
        if not weights:
            return
        until = self._arrival(d, leg)
        while weights and self.free_at[d] < until and self.free_at[d] + self.problem.duration(weights[0]) <= until:
            self._put(d, weights.popleft())
        most = max(*self.waited, max(self.allowed) - self.allowed[d])
        if weights and small and until - self.free_at[d] > most - self.waited[d]:
            self._put(d, weights.popleft())

    def _next(self, d: DeviceId, leg: Leg) -> Pass:
        return on_leg(self.p, leg, d, self.done[d][leg])

    def _ready(self, d: DeviceId, leg: Leg) -> bool:
        """True if device `d` has another pass on this leg, whose predecessors are all in the orders."""
        if self.done[d][leg] == self.m:
            return False
        j = self.done[d][leg]
        return all(len(self.ends[device][other]) > j for device, other, _ in self.needs[d][leg])

    def _arrival(self, d: DeviceId, leg: Leg) -> Ticks:
        """Return the tick at which all inputs of device `d`'s next pass on this leg have arrived."""
        j = self.done[d][leg]
        return max((self.ends[device][other][j] + lag for device, other, lag in self.needs[d][leg]), default=0)

    def _walk(self, d: DeviceId, leg: Leg) -> None:
        p = self._next(d, leg)
        self._put(d, p, self._arrival(d, leg))
        self.ends[d][leg].append(self.free_at[d])
        self.done[d][leg] += 1
        if p.kind is B:
            self.weights[d].append(p._replace(kind=W))

    def _put(self, d: DeviceId, p: Pass, arrival: Ticks = 0) -> None:
        self.built.put(d, p, arrival, self.problem.duration(p))
        self.memory_in_use[d] += self.whole if p.kind is F else -self.freed if p.kind is B else self.freed - self.whole


def _closed_form(problem: Problem) -> ClosedForm | None:
    """Return makespan, span and peaks for F = B = W and m >= 2p, where the span has no bubble; else None.

    None also where stages differ, transfers take time, or B frees part of an activation.
    """
    cost, p, m, network = equal_costs(problem), problem.devices, problem.microbatches, problem.network
    if cost is None or not cost.F == cost.B == cost.W > 0 or m < 2 * p:
        return None
    # More room than the paper's, and another order.
    if len(set(network.memory_in_flight)) > 1 or any(network.freed_by_backward):
        return None
    work = 6 * m * cost.F
    peak = (2 * p * network.memory_in_flight[0],) * p
    return ClosedForm(makespan=work + (p - 1) * cost.F, span=work, peak=peak)


HEURISTICS.register(
    Heuristic(
        name="zbv",
        reference="Qi et al., Zero Bubble, arXiv 2401.10241, section 6",
        needs="v-shape placement; a backward that splits",
        bubble="0 of span, (p-1)F of makespan, if F = B = W and m >= 2p",
        peak="2p chunk activations",
        order=zbv,
        closed_form=_closed_form,
        ceiling=lambda p, _: 2 * p,
        priorities=Priorities(promising=True, long_problems=2, high_memory=True),
    )
)
