"""Exact optima of tiny problems by trying every order. Knows what the contract says, neither simulator nor solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, combinations, islice, pairwise, permutations, product
from random import Random
from typing import NamedTuple

from pipesched.problem import placement
from pipesched.problem.features.module import Module
from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.schedule import Schedule
from tests.support.columns import Costs, Memory, build, costs_of

Orders = tuple[tuple[Slot, ...], ...]


class Optimum(NamedTuple):
    value: int
    schedule: Schedule


class TooManyOrdersError(ValueError):
    """There are more than may be tried."""


def optimum(problem: Problem, objective: Objective, fifo: bool = True, most: int = 10**9) -> Optimum | None:
    """The least value over all orders, and an order that has it; None if no order fits.

    Every backward is tried split and fused, every pair of forward and full backward as a block, and every order of a
    device that its memory allows. With `fifo`, passes of one kind run in micro-batch order on each stage.
    `TooManyOrdersError` where a device has as many as `most`, or more combinations of devices' orders are to be tried.
    """
    best: Optimum | None = None
    tried = 0
    games = [_Game(problem, fused) for fused in _ways_to_fuse(problem)]
    for game in sorted(games, key=_Game.load):
        orders = [list(islice(game.orders(device, fifo), most)) for device in range(problem.devices)]
        if max(map(len, orders)) == most:
            raise TooManyOrdersError
        fewest_first = sorted(range(problem.devices), key=lambda d: len(orders[d]))
        stack: list[dict[int, tuple[Slot, ...]]] = [{}]
        while stack:
            chosen = stack.pop()
            tried += 1
            if tried > most:
                raise TooManyOrdersError
            value = game.value(chosen, objective)
            if value is None or (best is not None and value >= best.value):
                continue
            if len(chosen) == problem.devices:
                best = Optimum(value, Schedule(tuple(chosen[d] for d in range(problem.devices)), "best"))
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


class _Game:
    """One choice of which backwards are fused: the passes, what each needs, and the value of orders."""

    def __init__(self, problem: Problem, fused: frozenset[tuple[int, int]]) -> None:
        self.problem, self.costs = problem, costs_of(problem)
        where = problem.placement.stage_device
        self.of_device: list[list[Pass]] = [[] for _ in range(problem.devices)]
        self.needs: dict[Pass, list[tuple[Pass, int]]] = {}

        def backward(stage: int, j: int) -> Pass:
            return Pass(BW if (stage, j) in fused else B, stage, j)

        for stages in problem.placement.chains:
            for place, stage in enumerate(stages):
                for j in problem.microbatches_of[stage]:
                    forward, back = Pass(F, stage, j), backward(stage, j)
                    self.needs[forward], self.needs[back] = [], [(forward, 0)]
                    if place > 0:
                        earlier = stages[place - 1]
                        lag = self._lag(earlier, where[earlier], where[stage])
                        self.needs[forward].append((Pass(F, earlier, j), lag))
                    if place + 1 < len(stages):
                        later = stages[place + 1]
                        lag = self._lag(stage, where[later], where[stage])
                        self.needs[back].append((backward(later, j), lag))
                    self.of_device[where[stage]] += [forward, back]
                    if back.kind is B:
                        self.needs[Pass(W, stage, j)] = [(back, 0)]
                        self.of_device[where[stage]].append(Pass(W, stage, j))
        for module in problem.modules:
            if module.shared:
                for j in problem.walking[0]:
                    self._share(module, j, backward)
                continue
            trunk, passes = problem.walking[0], problem.walking[0].stop // module.serves
            for n in range(passes):
                last = module.chains[n % module.copies][-1]
                own = problem.microbatches_of[last][n // module.copies]
                for fed, j in product(module.feeds, trunk[n * module.serves : (n + 1) * module.serves]):
                    self.needs[Pass(F, fed, j)].append((Pass(F, last, own), self._lag(last, where[last], where[fed])))
                    self.needs[backward(last, own)].append((backward(fed, j), self._lag(last, where[fed], where[last])))
        for before, after, backwards, *_ in () if problem.modules else problem.stage_arcs:
            for i, j in zip(problem.microbatches_of[before], problem.microbatches_of[after], strict=True):
                first, second = (
                    (backward(before, i), backward(after, j)) if backwards else (Pass(F, before, i), Pass(F, after, j))
                )
                self.needs[second].append((first, 0))
        self.before: dict[Pass, frozenset[Pass]] = {}
        for p in self.needs:
            self._ancestors(p)

    def _share(self, module: Module, place: int, backward: Callable[[int, int], Pass]) -> None:
        """Parts of one pass on all devices: each is needed by all that comes behind the collective."""
        where, (fed,) = self.problem.placement.stage_device, module.feeds
        parts = [(s, self.problem.microbatches_of[s][place // module.serves]) for (s,) in module.chains]
        collective = self.problem.stages[parts[0][0]].transfer
        for stage, j in parts:
            forward, back, sent = Pass(F, stage, j), backward(stage, j), self._lag(fed, where[fed], where[stage])
            if module.barriers == 0:
                self.needs[Pass(F, fed, place)].append((forward, collective))
                self.needs[back].append((backward(fed, place), self._lag(stage, where[fed], where[stage])))
                continue
            self.needs[forward].append((Pass(F, fed, place), sent))
            self.needs[back] += [(Pass(F, other, i), collective) for other, i in parts]
            self.needs[backward(fed, place)].append((forward if module.barriers == 1 else back, collective))

    def _lag(self, first: int, here: int, there: int) -> int:
        """Between a stage and the next one on its chain, from one device to another."""
        links = self.problem.links
        return self.problem.stages[first].transfer + (links[here][there] if links else 0) if here != there else 0

    def _ancestors(self, p: Pass) -> frozenset[Pass]:
        if p not in self.before:
            direct = [q for q, _ in self.needs[p]]
            self.before[p] = frozenset(direct).union(*map(self._ancestors, direct))
        return self.before[p]

    def ticks(self, *slot: Pass) -> int:
        if len(slot) == 2:
            assert self.costs.overlapped is not None
            return self.costs.overlapped[slot[0].stage]
        kinds = {F: self.costs.forward, B: self.costs.backward, W: self.costs.weight, BW: self.costs.fused}
        durations = kinds[slot[0].kind]
        assert durations is not None
        return durations[slot[0].stage]

    def _least_ticks(self, p: Pass) -> int:
        """Alone, or in a block with any other pass of its device."""
        alone, blocks = self.ticks(p), self.costs.overlapped
        if blocks is None or p.kind not in (F, BW):
            return alone
        forwards = [p] if p.kind is F else [q for q in self.of_device[self.problem.device(p)] if q.kind is F]
        return min(alone, *(blocks[q.stage] for q in forwards))

    def load(self) -> int:
        return max(sum(map(self.ticks, passes)) for passes in self.of_device)

    def _memory(self, p: Pass) -> tuple[int, int]:
        """Held more from p's start, and from p's end, than before it."""
        taken, freed = self.problem.stages[p.stage].activation, self.problem.stages[p.stage].freed
        lent, collected = self.problem.stages[p.stage].lent, self.problem.stages[p.stage].collected
        if p.kind is B:
            return max(0, -freed), -freed - collected
        whole = taken + lent
        return {F: (whole, whole), BW: (0, -taken - collected), W: (0, freed - taken)}[p.kind]

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
                if held + sum(self._memory(p)[0] for p in slot) <= room:
                    yield from extend((*order, slot), done.union(slot), held + sum(self._memory(p)[1] for p in slot))

        return extend((), frozenset(), 0)

    def value(self, chosen: dict[int, tuple[Slot, ...]], objective: Objective) -> int | None:
        """The least value under these devices' orders, the others free to run everything at once; None: deadlock."""
        longest = self._longest_ways(chosen)
        if longest is None:
            return None
        from_start, between = longest
        if objective is Objective.MAKESPAN:
            return from_start
        # Device e ends `between[d, e]` after d starts at least, and starts no earlier than the span before it ends:
        # a circle of n devices whose ways add up to x makes n spans at least x.
        return max(
            (
                -(-sum(between.get(pair, -(10**9)) for pair in zip(cycle, (*cycle[1:], cycle[0]), strict=True)) // n)
                for n in range(1, len(chosen) + 1)
                for cycle in permutations(chosen, n)
            ),
            default=0,
        )

    def _longest_ways(self, chosen: dict[int, tuple[Slot, ...]]) -> tuple[int, dict[tuple[int, int], int]] | None:
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
