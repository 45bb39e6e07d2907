"""Exact optima of tiny problems whose passes are a task each, by every order of the passes of every device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations, islice, pairwise, permutations
from math import ceil
from random import Random
from typing import NamedTuple, TypeVar

from pipesched.problem import placement
from pipesched.problem.passes import BW, B, F, Pass, Slot
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.schedule import Schedule
from tests.support.columns import Costs, Memory, build
from tests.support.task_brute_force import Game, TooManyOrdersError

Chosen = dict[int, tuple[Slot, ...]]
Value = TypeVar("Value", int, Fraction)


class Optimum(NamedTuple):
    value: int
    schedule: Schedule


def optimum(problem: Problem, objective: Objective, fifo: bool = True, most: int = 10**9) -> Optimum | None:
    """The least value over all orders, and an order that has it; None if no order fits.

    Every backward is tried split and fused, every pair of forward and full backward as a block, and every order of a
    device that its memory allows. With `fifo`, passes of one kind run in micro-batch order on each stage.
    `TooManyOrdersError` where a device has as many as `most`, or more combinations of devices' orders are to be tried.
    """

    def whole(game: Orders, chosen: Chosen) -> int | None:
        value = game.value(chosen, objective)
        return None if value is None else ceil(value)

    found = _least(problem, whole, fifo, most)
    if found is None:
        return None
    value, chosen = found
    return Optimum(value, Schedule(tuple(chosen[d] for d in range(problem.devices)), "best"))


def least_span(problem: Problem) -> Fraction | None:
    """To the fraction of a tick, over all orders whose passes of one kind run in micro-batch order."""
    found = _least(problem, lambda game, chosen: game.value(chosen, Objective.SPAN), True, 10**9)
    return found and found[0]


def _least(
    problem: Problem, value_of: Callable[[Orders, Chosen], Value | None], fifo: bool, most: int
) -> tuple[Value, Chosen] | None:
    best: tuple[Value, Chosen] | None = None
    tried = 0
    for game in sorted((Orders(problem, fused) for fused in _ways_to_fuse(problem)), key=Orders.load):
        orders = [list(islice(game.orders(device, fifo), most)) for device in range(problem.devices)]
        if max(map(len, orders)) == most:
            raise TooManyOrdersError
        fewest_first = sorted(range(problem.devices), key=lambda d: len(orders[d]))
        stack: list[Chosen] = [{}]
        while stack:
            chosen = stack.pop()
            tried += 1
            if tried > most:
                raise TooManyOrdersError
            value = value_of(game, chosen)
            if value is None or (best is not None and value >= best[0]):
                continue
            if len(chosen) == problem.devices:
                best = value, chosen
                continue
            device = fewest_first[len(chosen)]
            stack += [{**chosen, device: order} for order in orders[device]]
    return best


def attained(bounds: Callable[[Problem, int], Iterable[Certificate]], objective: Objective, seeds: int) -> int:
    """How many optima of tiny problems the bounds reach; fails if one is above. They are told of a value near it."""
    tight = 0
    for seed in range(seeds):
        problem = replace(tiny_problem(Random(seed)), objective=objective)
        best = optimum(problem, objective)
        if best is not None:
            found = [bound.value_ticks for bound in bounds(problem, best.value + 3)]
            assert max(found, default=0) <= best.value, seed
            tight += max(found, default=0) == best.value
    return tight


def _ways_to_fuse(problem: Problem) -> Iterator[frozenset[tuple[int, int]]]:
    pairs = [(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]]
    if not problem.splittable:
        return iter([frozenset(pairs)])
    return map(frozenset, chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1)))


class Orders:
    """One choice of which backwards are fused: the orders of its passes, which are a task each, and their values."""

    def __init__(self, problem: Problem, fused: frozenset[tuple[int, int]]) -> None:
        game = Game(problem, fused)
        self.problem, self._alone = problem, {task.of: ticks for task, ticks in game.ticks.items()}
        self.of_device = [[p for p in game.passes if problem.device(p) == device] for device in range(problem.devices)]
        self.needs: dict[Pass, list[tuple[Pass, int]]] = {p: [] for p in game.passes}
        for (before, after), lag in game.lags.items():
            self.needs[after.of].append((before.of, lag))
        # Held more from a pass's start, and from its end, than before it.
        self._memory = {own.begins[0].of: (own.takes, own.takes - own.gives) for own in game.holdings}
        self.before: dict[Pass, frozenset[Pass]] = {}
        for p in self.needs:
            self._ancestors(p)

    def _ancestors(self, p: Pass) -> frozenset[Pass]:
        if p not in self.before:
            direct = [q for q, _ in self.needs[p]]
            self.before[p] = frozenset(direct).union(*map(self._ancestors, direct))
        return self.before[p]

    def ticks(self, *slot: Pass) -> int:
        return self._alone[slot[0]] if len(slot) == 1 else self.problem.stages[slot[0].stage].overlapped or 0

    def _least_ticks(self, p: Pass) -> int:
        """Alone, or in a block with any other pass of its device."""
        if not self.problem.overlaps or p.kind not in (F, BW):
            return self.ticks(p)
        here = self.of_device[self.problem.device(p)]
        blocks = [(p,)] if p.kind is F else [(q,) for q in here if q.kind is F]
        return min(self.ticks(p), *(self.ticks(*forward, p) for forward in blocks))

    def load(self) -> int:
        return max(sum(map(self.ticks, passes)) for passes in self.of_device)

    def orders(self, device: int, fifo: bool) -> Iterator[tuple[Slot, ...]]:
        """Every order of the device's passes that its memory and the needs among them allow."""
        here = self.of_device[device]
        wait = {p: self.before[p].intersection(here) for p in here}
        if fifo:  # a stage's B and BW are one kind here
            wait = {
                p: before
                | {
                    q
                    for q in here
                    if q.stage == p.stage and q.microbatch < p.microbatch and (q.kind in (B, BW)) == (p.kind in (B, BW))
                    if q.kind is p.kind or p.kind in (B, BW)
                }
                for p, before in wait.items()
            }
        capacity = self.problem.room[device]
        room = 10**9 if capacity is None else capacity

        def extend(order: tuple[Slot, ...], done: frozenset[Pass], held: int) -> Iterator[tuple[Slot, ...]]:
            if len(done) == len(here):
                yield order
                return
            ready = [p for p in here if p not in done and wait[p] <= done]
            slots: list[Slot] = [(p,) for p in ready]
            if self.problem.overlaps:
                slots += [(f, b) for f in ready if f.kind is F for b in ready if b.kind is BW]
            for slot in slots:
                if held + sum(self._memory[p][0] for p in slot) <= room:
                    yield from extend((*order, slot), done.union(slot), held + sum(self._memory[p][1] for p in slot))

        return extend((), frozenset(), 0)

    def value(self, chosen: Chosen, objective: Objective) -> Fraction | None:
        """The least value under these devices' orders, the others free to run everything at once; None: deadlock."""
        longest = self._longest_ways(chosen)
        if longest is None:
            return None
        from_start, between = longest
        if objective is Objective.MAKESPAN:
            return Fraction(from_start)
        # Device e ends `between[d, e]` after d starts at least, and starts no earlier than the span before it ends:
        # a circle of n devices whose ways add up to x makes n spans at least x.
        circles = chain.from_iterable(permutations(chosen, n) for n in range(1, len(chosen) + 1))
        means = (
            Fraction(sum(between.get(pair, -(10**9)) for pair in zip(c, (*c[1:], c[0]), strict=True)), len(c))
            for c in circles
        )
        return max(means, default=Fraction(0))

    def _longest_ways(self, chosen: Chosen) -> tuple[int, dict[tuple[int, int], int]] | None:
        """From time 0 to the last end, and from the start of one ordered device to the end of another."""
        after: dict[Slot, list[tuple[Slot, int]]] = {}
        slot_of: dict[Pass, Slot] = {}
        for device, passes in enumerate(self.of_device):
            order = chosen.get(device)
            slots: list[Slot] = [(p,) for p in passes] if order is None else list(order)
            after.update({slot: [] for slot in slots})
            slot_of.update({p: slot for slot in slots for p in slot})
            if order is not None:
                for one, other in pairwise(order):
                    after[other].append((one, 0))
        for slot, waits in after.items():
            waits += [(slot_of[q], lag) for p in slot for q, lag in self.needs[p]]
        ends: dict[Slot, dict[int, int]] = {}  # after time 0 (key -1), and after each ordered device's start
        openings = {order[0]: device for device, order in chosen.items() if order}
        under_way: set[Slot] = set()

        def end(slot: Slot) -> dict[int, int] | None:
            if slot in ends:
                return ends[slot]
            if slot in under_way:
                return None
            under_way.add(slot)
            start = {-1: 0}
            if slot in openings:
                start[openings[slot]] = 0
            for before, lag in after[slot]:
                ways = end(before)
                if ways is None:
                    return None
                for source, way in ways.items():
                    start[source] = max(start.get(source, 0), way + lag)
            ticks = self.ticks(*slot) if self.problem.device(slot[0]) in chosen else self._least_ticks(slot[0])
            ends[slot] = {source: at + ticks for source, at in start.items()}
            return ends[slot]

        if any(end(slot) is None for slot in after):
            return None
        total = max(ways[-1] for ways in ends.values())
        between = {(d, e): ends[order[-1]][d] for e, order in chosen.items() for d in chosen if d in ends[order[-1]]}
        return total, between


# Placements, and how many micro-batches of them can be tried in every order: with a split backward, and fused only.
SHAPES: tuple[tuple[Placement, int, int], ...] = (
    (placement.linear(1), 3, 4),
    (placement.linear(2), 2, 4),
    (placement.linear(3), 2, 3),
    (placement.v_shape(1), 1, 2),
    (placement.v_shape(2), 1, 2),
    (placement.interleaved(2, 2), 1, 2),
    (placement.wave(1, 3), 1, 1),
    (placement.bidirectional(2), 2, 3),
    (placement.explicit(2, [0, 1, 1]), 1, 2),
    (placement.explicit(2, [0, 1, 0]), 1, 2),
    (placement.explicit(2, [1, 0]), 2, 3),
    (placement.explicit(3, [2, 0, 1, 0]), 1, 2),
)


def tiny_problem(random: Random, shapes: tuple[tuple[Placement, int, int], ...] = SHAPES) -> Problem:
    """Random times with zeros, transfers and memory; tight, loose and absurd caps; blocks now and then."""
    where, most_split, most_fused = random.choice(shapes)
    stages, split = where.stages, random.random() < 0.6
    microbatches = random.randint(1, most_split if split else most_fused)
    equal, longest = random.random() < 0.4, random.choice((2, 6, 12))

    def ticks(low: int = 0, high: int = longest) -> tuple[int, ...]:
        drawn = [random.randint(low, high) for _ in range(stages)]
        return (drawn[0],) * stages if equal else tuple(drawn)

    forward, backward, weight = ticks(), ticks(), ticks()
    fused = tuple(max(0, b + w + more) for b, w, more in zip(backward, weight, ticks(-3, 2), strict=True))
    if random.random() < 0.2:
        fused = ticks()
    elif random.random() < 0.4:
        fused = tuple(b + w for b, w in zip(backward, weight, strict=True))
    overlapped = None
    if random.random() < (0.2 if split else 0.4):
        overlapped = tuple(random.randint(0, f + x + 1) for f, x in zip(forward, fused, strict=True))
    transfer = ticks() if random.random() < 0.7 else (0,) * stages
    if split:
        costs = Costs(forward, backward, weight, fused, transfer, overlapped)
    else:
        costs = Costs(forward, fused, None, fused, transfer, overlapped)
    activation = ticks(0 if random.random() < 0.2 else 1, 3)
    most = activation if random.random() < 0.5 else tuple(min(1, a) for a in activation)
    freed = tuple(random.choice((0, random.randint(-2, a), a)) for a in most)
    capacity: list[int | None] = []
    for device, held in enumerate(where.stages_of):
        needed = max(sum(activation[s] for s in c if where.stage_device[s] == device) for c in where.chains)
        most_held = microbatches * sum(activation[s] for s in held)
        limit = random.randint(
            needed - (random.random() < 0.05), needed + max(0, most_held - needed) // random.randint(1, 3)
        )
        capacity.append(None if random.random() < 0.15 else limit)
    one = build(where, microbatches, costs, Memory(activation, freed, tuple(capacity)))
    if random.random() < 0.25:
        devices = range(where.devices)
        return replace(one, links=tuple(tuple(random.randint(0, longest) for _ in devices) for _ in devices))
    return one
