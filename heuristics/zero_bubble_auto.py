"""ZB-1p, ZB-2p and every memory cap between: the Zero Bubble paper's automatic schedule (its heuristic search).

Section 3.1 of arXiv 2401.10241: fill memory with forwards before the first backward; then one forward and one backward
per round, with weight passes where a device would wait, or where memory runs out. Three yes/no choices make eight
variants; the best by the problem's objective is taken.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import NamedTuple

from heuristics.building.growing_orders import GrowingOrders
from heuristics.building.requirements import equal_costs, one_stage_a_device, split_backward
from heuristics.catalogue import HEURISTICS, ClosedForm, Heuristic, Priorities
from pipesched.errors import DoesNotApply
from pipesched.problem.passes import B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, StageId, Ticks
from pipesched.schedule.schedule import Schedule, schedule_of


class Choices(NamedTuple):
    """The three yes/no choices of the search, for one variant.

    `wait_for_first_b`: the warm-up is filled only while it ends before the first gradient arrives. `hold_back_f`: a
    device skips a forward that the device after it cannot use soon. `fill_small_waits`: a W fills a wait too short for
    it even where the device is not the slowest.
    """

    wait_for_first_b: bool
    hold_back_f: bool
    fill_small_waits: bool


def zero_bubble_capped(problem: Problem, name: str, per_stage: int | None) -> Schedule:
    """Return the best of eight variants with room for `per_stage` x p activations (None: the file's capacity).

    Raises `DoesNotApply` unless backwards split, there is one stage per device, and memory has room for every pass. The
    room is that of each device; best is the least value of the problem's objective.
    """
    split_backward(problem)
    chain = one_stage_a_device(problem)
    caps = _caps(problem, chain, per_stage)
    searches = [_Search(problem, chain, caps, Choices(*flags)) for flags in product((True, False), repeat=3)]
    orders = [search.run() for search in searches]
    values = [search.built.value(problem.objective) for search in searches]
    return schedule_of(orders[values.index(min(values))], name)


def _caps(problem: Problem, chain: tuple[StageId, ...], per_stage: int | None) -> list[MemorySteps | None]:
    """Return the memory limit for each stage of the chain, in its order and in steps of memory; None without a limit.

    It is the memory of `per_stage` times as many of the stage's activations as the chain has stages or, if `per_stage`
    is None, the memory of the stage's device.
    """
    if per_stage is not None:
        return [per_stage * len(chain) * problem.network.memory_in_flight[stage] for stage in chain]
    return [problem.room[problem.placement.stage_device[stage]] for stage in chain]


class _Search:
    """One variant of the search for a zero-bubble order, which `run` builds round by round and returns by device.

    `caps` are the memory limits (None: none). Lists are by the stage's position in the chain, from 0, which is also the
    argument `i` of methods.
    """

    def __init__(
        self, problem: Problem, chain: tuple[StageId, ...], caps: list[MemorySteps | None], choices: Choices
    ) -> None:
        self.problem, self.chain, self.caps, self.choices = problem, chain, caps, choices
        self.p, self.m = len(chain), problem.microbatches
        self.built = GrowingOrders(len(chain))
        self.free_at, self.waited, self.ends = self.built.free_at, self.built.waited, self.built.ends
        self.done: list[dict[PassKind, int]] = [{F: 0, B: 0, W: 0} for _ in chain]
        self.memory_in_use = [0] * self.p  # by device, after all that was put on it

    def run(self) -> list[list[Pass]]:
        """Return the order of every device, by device number.

        Raises `DoesNotApply` if memory has no room for a pass.
        """
        self._warm_up()
        for _ in range(1, self.m):
            self._forwards()
            self._backwards()
        orders: list[list[Pass]] = [[] for _ in range(self.p)]
        for i, stage in enumerate(self.chain):
            while self.done[i][W] < self.m:
                self._put(i, W)
            orders[self.problem.placement.stage_device[stage]] = self.built.orders[i]
        return orders

    def _warm_up(self) -> None:
        """Run forwards until the first gradient arrives or memory is full, then the first backward on every stage."""
        for i in range(self.p):
            self._put(i, F)
        extra = self._extra_forwards()
        for i in range(1, self.p):  # a stage never runs ahead of the one before it
            all_in = self.done[i][F] + extra[i] >= self.m
            extra[i] = max(0, min(extra[i], extra[i - 1] if all_in else extra[i - 1] - 1))
        for i, count in enumerate(extra):
            for _ in range(count):
                self._put(i, F)
        for i in reversed(range(self.p)):
            self._put(i, B)

    def _extra_forwards(self) -> list[int]:
        """Return for each stage how many more forwards it has time and memory for before its first backward."""
        extra = [0] * self.p
        gradient_at = self.free_at[-1] + self._ticks(self.p - 1, B)
        for i in reversed(range(self.p - 1)):
            gradient_at += self._lag(i + 1, i)
            forward, memory = self._ticks(i, F), self._change(i, F)
            now, in_use = self.free_at[i], self.memory_in_use[i]
            while self.done[i][F] + extra[i] < self.m and self._fits(i, in_use + memory):
                too_late = now + forward > gradient_at if self.choices.wait_for_first_b else now >= gradient_at
                if too_late:
                    break
                now, in_use, extra[i] = now + forward, in_use + memory, extra[i] + 1
            gradient_at = max(now, gradient_at) + self._ticks(i, B)
        return extra

    def _forwards(self) -> None:
        """Run one forward on every stage that wants one and whose successors in the chain all run theirs.

        Raises `DoesNotApply` if memory has no room for a pass.
        """
        wanted = [self._wants_forward(i) for i in range(self.p)]
        for i in reversed(range(self.p - 1)):
            wanted[i] = wanted[i] and wanted[i + 1]
        for i in range(self.p):
            if wanted[i]:
                self._make_room(i, F)
                if i > 0:
                    self._fill_wait(i, self.ends[self._next(i - 1, F, self.done[i][F])] + self._lag(i - 1, i))
                self._put(i, F)

    def _wants_forward(self, i: int) -> bool:
        if self.done[i][F] >= self.m:
            return False
        ahead_of_next = i + 1 < self.p and self.done[i][F] >= self.done[i + 1][F] + 2
        if not (self.choices.hold_back_f and ahead_of_next):
            return True
        gradient_at = self.free_at[i + 1] + self._ticks(i + 1, F) + self._ticks(i + 1, B) + self._lag(i + 1, i)
        now = self.free_at[i]
        if now >= gradient_at:
            return False
        if now + self._ticks(i, F) + self._ticks_to_make_room(i) <= gradient_at:
            return True
        return gradient_at - now > max(self.waited) - self.waited[i]

    def _backwards(self) -> None:
        """Run the next backward on every stage, the last first, after weight passes that free memory or fill its wait.

        Raises `DoesNotApply` if memory has no room for a pass.
        """
        for i in reversed(range(self.p)):
            self._make_room(i, B)
            if i + 1 < self.p:
                self._fill_wait(i, self.ends[self._next(i + 1, B, self.done[i][B])] + self._lag(i + 1, i))
            if i == 0 and self.done[i][F] == self.m:
                while self.done[i][W] < self.done[i][B]:
                    self._put(i, W)
            self._put(i, B)

    def _make_room(self, i: int, kind: PassKind) -> None:
        while not self._fits(i, self.memory_in_use[i] + self._change(i, kind)):
            if self.done[i][W] >= self.done[i][B]:
                raise DoesNotApply(f"its memory cap leaves no room for {kind} on stage {self.chain[i]}")
            self._put(i, W)

    def _ticks_to_make_room(self, i: int) -> Ticks:
        """Return the ticks of the weight passes that stage `i` must run before its memory has room for a forward.

        Those of all weight passes that it can run now, if these make too little room.
        """
        in_use, ready = self.memory_in_use[i] + self._change(i, F), self.done[i][B] - self.done[i][W]
        count = 0
        while not self._fits(i, in_use + count * self._change(i, W)) and count < ready:
            count += 1
        return count * self._ticks(i, W)

    def _fill_wait(self, i: int, until: Ticks) -> None:
        """Run weight passes while stage `i` would wait until tick `until`.

        The last one may be too long for the wait, if its device is the slowest or the variant allows that.
        """
        weight = self._ticks(i, W)
        while self.done[i][W] < self.done[i][B] and self.free_at[i] + weight <= until:
            self._put(i, W)
        wait = until - self.free_at[i]
        if self.done[i][W] < self.done[i][B] and wait > 0:
            slowest = wait > max(self.waited) - self.waited[i]
            if slowest or self.choices.fill_small_waits:
                self._put(i, W)

    def _put(self, i: int, kind: PassKind) -> None:
        p = self._next(i, kind, self.done[i][kind])
        arrival = 0
        if kind is F and i > 0:
            arrival = self.ends[self._next(i - 1, F, p.microbatch)] + self._lag(i - 1, i)
        if kind is B and i + 1 < self.p:
            arrival = self.ends[self._next(i + 1, B, p.microbatch)] + self._lag(i + 1, i)
        self.built.put(i, p, arrival, self.problem.duration(p))
        self.memory_in_use[i] += self._change(i, kind)
        self.done[i][kind] += 1

    def _next(self, i: int, kind: PassKind, microbatch: int) -> Pass:
        return Pass(kind, self.chain[i], microbatch)

    def _ticks(self, i: int, kind: PassKind) -> Ticks:
        return self.problem.duration(self._next(i, kind, 0))

    def _change(self, i: int, kind: PassKind) -> MemorySteps:
        return self.problem.network.change[kind, self.chain[i]].total

    def _fits(self, i: int, in_use: MemorySteps) -> bool:
        cap = self.caps[i]
        return cap is None or in_use <= cap

    def _lag(self, i: int, to: int) -> Ticks:
        """Return the transfer time in ticks from the i-th stage of the chain to its neighbour, the `to`-th."""
        return self.problem.lag(self.chain[i], self.chain[to])


def _closed_form(problem: Problem, per_stage: int | None) -> ClosedForm | None:
    """Return the span for F = B = W, equal stages and m >= 2p.

    Each device has up to `per_stage` times as many activations as devices. With 1 that is ZB-H1's, with 2 one without
    bubbles. None for other costs, transfers that take time, fewer micro-batches, activations that B frees in part, or
    without such a limit (`per_stage` None).
    """
    cost, p, m = equal_costs(problem), problem.devices, problem.microbatches
    if cost is None or not cost.F == cost.B == cost.W or per_stage is None or m < 2 * p:
        return None
    if any(problem.network.freed_by_backward):
        return None
    work = m * 3 * cost.F
    return ClosedForm(span=work + (p - 1) * cost.F if per_stage == 1 else work)


def _times_devices(each: int, devices: int, _: int) -> int:
    return each * devices


for _name, _per_stage, _bubble, _peak in (
    ("zb-1p", 1, "(p-1)(F+B-W) of span, if F = B = W and m >= 2p", "p activations"),
    ("zb-2p", 2, "0 of span, if F = B = W and m >= 2p", "2p activations"),
    ("zb", None, "none; found by search", "the file's capacity"),
):
    HEURISTICS.register(
        Heuristic(
            name=_name,
            reference="Qi et al., Zero Bubble, arXiv 2401.10241, section 3.1",
            needs="one stage a device; a backward that splits",
            bubble=_bubble,
            peak=_peak,
            order=partial(zero_bubble_capped, name=_name, per_stage=_per_stage),
            closed_form=partial(_closed_form, per_stage=_per_stage),
            searched=True,
            ceiling=None if _per_stage is None else partial(_times_devices, _per_stage),
            priorities=Priorities(promising=_per_stage is None),
        )
    )
