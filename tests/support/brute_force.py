"""Exact optima of tiny problems whose passes are a task each, by every order of the passes of every device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from heapq import heappop, heappush
from itertools import chain, combinations, islice, permutations, product
from math import ceil
from random import Random
from typing import Any, NamedTuple, TypeVar, cast

from pipesched.problem import placement
from pipesched.problem.passes import BW, B, F, Slot
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import Stage
from pipesched.schedule.schedule import Schedule, parse_slot, slot_text
from tests.support.columns import Costs, Memory, build
from tests.support.optima import fraction_as_json, fraction_of_json, stored
from tests.support.task_brute_force import Game, TooManyOrdersError

# A pass or a block of two, and the order of a device.
Numbers = tuple[int, ...]
Order = tuple[Numbers, ...]
Chosen = dict[int, Order]
Value = TypeVar("Value", int, Fraction)

NEVER = -(10**9)


def together(forward: Stage, backward: Stage) -> int:
    """The ticks of a block of these stages' passes."""
    if forward.overlapped is not None:
        return forward.overlapped
    saved = [own for own in (forward.block_saves, backward.block_saves) if own is not None]
    return forward.forward + backward.fused - min(saved)


class Optimum(NamedTuple):
    value: int
    schedule: Schedule


def _as_json(found: Optimum | None) -> list[Any] | None:
    return found and [found.value, *(" ".join(map(slot_text, order)) for order in found.schedule.orders)]


def _of_json(found: list[Any] | None) -> Optimum | None:
    if found is None:
        return None
    value, *orders = found
    return Optimum(value, Schedule(tuple(tuple(map(parse_slot, order.split())) for order in orders), "best"))


@stored(_as_json, _of_json, TooManyOrdersError)
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
    return Optimum(found[0], Schedule(found[1], "best"))


@stored(fraction_as_json, fraction_of_json, TooManyOrdersError)
def least_span(problem: Problem) -> Fraction | None:
    """To the fraction of a tick, over all orders whose passes of one kind run in micro-batch order."""
    found = _least(problem, lambda game, chosen: game.value(chosen, Objective.SPAN), True, 10**9)
    return found and found[0]


def _least(
    problem: Problem, value_of: Callable[[Orders, Chosen], Value | None], fifo: bool, most: int
) -> tuple[Value, tuple[tuple[Slot, ...], ...]] | None:
    """Best first: a value of some devices' orders is a bound of those that have them too."""
    best: Value | None = None
    games = [Orders(problem, fused) for fused in _choices_of_fused(problem)]
    heap: list[tuple[Value, int, int, Orders, Chosen]] = []
    number = 0

    def offer(game: Orders, chosen: Chosen) -> None:
        nonlocal best, number
        number += 1
        if number > most + len(games):
            raise TooManyOrdersError
        value = value_of(game, chosen)
        if value is not None and (best is None or value < best):
            heappush(heap, (value, -len(chosen), number, game, chosen))
            best = value if len(chosen) == problem.devices else best

    for game in games:
        offer(game, {})
    while heap:
        value, _, _, game, chosen = heappop(heap)
        if len(chosen) == problem.devices:
            return value, tuple(game.slots(chosen[device]) for device in range(problem.devices))
        orders = game.every_order(fifo, most)
        device = min(orders.keys() - chosen.keys(), key=lambda each: len(orders[each]))
        for order in orders[device]:
            offer(game, {**chosen, device: order})
    return None


def _choices_of_fused(problem: Problem) -> Iterator[frozenset[tuple[int, int]]]:
    pairs = [(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]]
    if not problem.splittable:
        return iter([frozenset(pairs)])
    return map(frozenset, chain.from_iterable(combinations(pairs, n) for n in range(len(pairs) + 1)))


class Orders:
    """One choice of which backwards are fused: the orders of its passes, which are a task each, and their values.

    Passes are numbers, and sets of them bits.
    """

    def __init__(self, problem: Problem, fused: frozenset[tuple[int, int]]) -> None:
        game = Game(problem, fused)
        self.problem, self.passes = problem, [*game.passes]
        number = {p: n for n, p in enumerate(self.passes)}
        self._device = [*map(problem.device, self.passes)]
        self.of_device = [[n for n, on in enumerate(self._device) if on == device] for device in range(problem.devices)]
        self._alone, self._memory = [0] * len(number), [(0, 0)] * len(number)
        for task, ticks in game.ticks.items():
            self._alone[number[task.of]] = ticks
        for own in game.holdings:  # held more from a pass's start, and from its end, than before it
            self._memory[number[own.begins[0].of]] = own.takes, own.takes - own.gives
        self._needs: list[list[tuple[int, int]]] = [[] for _ in number]
        for (before, after), lag in game.lags.items():
            self._needs[number[after.of]].append((number[before.of], lag))
        self._direct = [sum({1 << q for q, _ in needs}) for needs in self._needs]
        self._every: dict[int, list[Order]] | None = None
        self._before: list[int | None] = [None] * len(number)
        self._least = [self._least_ticks(n) for n in range(len(number))]

    def _ancestors(self, n: int) -> int:
        found = self._before[n]
        if found is None:
            found = self._direct[n]
            for q, _ in self._needs[n]:
                found |= self._ancestors(q)
            self._before[n] = found
        return found

    def _ticks(self, slot: Numbers) -> int:
        if len(slot) == 1:
            return self._alone[slot[0]]
        return together(*(self.problem.stages[self.passes[n].stage] for n in slot))

    def _least_ticks(self, n: int) -> int:
        """Alone, or in a block with any other pass of its device."""
        kind = self.passes[n].kind
        if not self.problem.overlaps or kind not in (F, BW):
            return self._alone[n]
        mates = [q for q in self.of_device[self._device[n]] if self.passes[q].kind is (BW if kind is F else F)]
        return min([self._alone[n], *(self._ticks((n, mate) if kind is F else (mate, n)) for mate in mates)])

    def slots(self, order: Order) -> tuple[Slot, ...]:
        return tuple(cast(Slot, tuple(self.passes[n] for n in slot)) for slot in order)

    def every_order(self, fifo: bool, most: int) -> dict[int, list[Order]]:
        """Of every device; `TooManyOrdersError` where one has as many as that."""
        if self._every is None:
            self._every = {d: list(islice(self.orders(d, fifo), most)) for d in range(self.problem.devices)}
            if max(map(len, self._every.values())) == most:
                raise TooManyOrdersError
        return self._every

    def orders(self, device: int, fifo: bool) -> Iterator[Order]:
        """Every order of the device's passes that its memory and the needs among them allow."""
        here = self.of_device[device]
        every = sum(1 << n for n in here)
        wait = {n: self._ancestors(n) & every for n in here}
        for n, q in permutations(here, 2) if fifo else ():
            one, other = self.passes[n], self.passes[q]
            backwards = one.kind in (B, BW) and other.kind in (B, BW)  # which are one kind here
            if one.stage == other.stage and other.microbatch < one.microbatch and (backwards or one.kind is other.kind):
                wait[n] |= 1 << q
        capacity = self.problem.room[device]
        room = 10**9 if capacity is None else capacity

        def extend(order: Order, done: int, memory: int) -> Iterator[Order]:
            if done == every:
                yield order
                return
            ready = [n for n in here if not done >> n & 1 and not wait[n] & ~done]
            slots: list[Numbers] = [(n,) for n in ready]
            if self.problem.overlaps:
                forwards, backs = ([n for n in ready if self.passes[n].kind is kind] for kind in (F, BW))
                slots += product(forwards, backs)
            for slot in slots:
                if memory + sum(self._memory[n][0] for n in slot) <= room:
                    then = memory + sum(self._memory[n][1] for n in slot)
                    yield from extend((*order, slot), done | sum(1 << n for n in slot), then)

        return extend((), 0, 0)

    def value_of(self, schedule: Schedule) -> Fraction | None:
        """The least span with all of a schedule's orders."""
        number = {p: n for n, p in enumerate(self.passes)}
        chosen = enumerate(tuple(tuple(number[p] for p in slot) for slot in order) for order in schedule.orders)
        return self.value(dict(chosen), Objective.SPAN)

    def value(self, chosen: Mapping[int, Order], objective: Objective) -> Fraction | None:
        """The least value under these devices' orders, the others free to run everything at once; None: deadlock."""
        sequence = self._sequence(chosen)
        if sequence is None:
            return None
        if objective == Objective.MAKESPAN:
            return Fraction(max(self._ends(sequence, chosen)))
        # A device ends so long after another one starts at least, and starts no earlier than the span before it ends:
        # a circle of n devices whose ways add up to x makes n spans at least x.
        orders = {device: order for device, order in chosen.items() if order}
        between = dict[tuple[int, int], int]()
        for d in orders:
            ends = self._ends(sequence, chosen, d)
            between |= {(d, e): ends[order[-1][0]] for e, order in orders.items()}
        circles = chain.from_iterable(permutations(orders, n) for n in range(1, len(orders) + 1))
        means = (Fraction(sum(between[pair] for pair in zip(c, (*c[1:], c[0]), strict=True)), len(c)) for c in circles)
        return max(means, default=Fraction(0))

    def _sequence(self, chosen: Mapping[int, Order]) -> list[Numbers] | None:
        """All slots, each after its predecessors; None where these form a cycle."""
        free = [((n,),) for device, own in enumerate(self.of_device) if device not in chosen for n in own]
        queues = [[*reversed(order)] for order in (*chosen.values(), *free)]
        done, sequence, before = 0, list[Numbers](), -1
        while before < len(sequence):
            before = len(sequence)
            for queue in queues:
                while queue and not any(self._direct[n] & ~done for n in queue[-1]):
                    sequence.append(queue.pop())
                    for n in sequence[-1]:
                        done |= 1 << n
        return None if any(queues) else sequence

    def _ends(self, sequence: Iterable[Numbers], chosen: Mapping[int, Order], since: int | None = None) -> list[int]:
        """When passes end at the earliest, after time 0, or after the start of an ordered device if at all."""
        ends = [0] * len(self.passes)
        free = dict.fromkeys(chosen, 0 if since is None else NEVER)
        if since is not None:
            free[since] = 0
        for slot in sequence:
            device = self._device[slot[0]]
            start = free.get(device, 0 if since is None else NEVER)
            for n in slot:
                for q, lag in self._needs[n]:
                    if ends[q] + lag > start:
                        start = ends[q] + lag
            if device in chosen:
                end = free[device] = start + (self._alone[slot[0]] if len(slot) == 1 else self._ticks(slot))
            else:
                end = start + self._least[slot[0]]
            for n in slot:
                ends[n] = end
        return ends


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
    for device, stages_of_device in enumerate(where.stages_of):
        needed = max(sum(activation[s] for s in c if where.stage_device[s] == device) for c in where.chains)
        most_live = microbatches * sum(activation[s] for s in stages_of_device)
        limit = random.randint(
            needed - (random.random() < 0.05), needed + max(0, most_live - needed) // random.randint(1, 3)
        )
        capacity.append(None if random.random() < 0.15 else limit)
    one = build(where, microbatches, costs, Memory(activation, freed, tuple(capacity)))
    if random.random() < 0.25:
        devices = range(where.devices)
        return replace(one, links=tuple(tuple(random.randint(0, longest) for _ in devices) for _ in devices))
    return one
