"""States of iterations under way, at random, and the least end of the remaining tasks by trying every order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from itertools import islice, product
from random import Random

from pipesched.problem.features.device_resources import Pool
from pipesched.problem.gradient_norm import norm_of
from pipesched.problem.passes import (
    BW,
    OFFLOAD,
    RECOMPUTATIONS,
    RELOAD,
    RESHARD,
    UNSHARD,
    B,
    F,
    Pass,
    PassKind,
    Task,
)
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.state import Ran, State
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from tests.support.makers import always, problem, random_order
from tests.support.norm_problems import tiny_norms
from tests.support.task_brute_force import Game, gather_counts, savings, tiny_gathers, tiny_reductions, tiny_tasks
from tests.support.tiny_memory import tiny_memory

_SHAPES = (
    (1, {}, 3),
    (2, {}, 2),
    (3, {}, 2),
    (1, {"placement": "v-shape"}, 2),
    (2, {"placement": [0, 1, 0]}, 2),
    (2, {"placement": "bidirectional"}, 2),
)


def tiny_state(random: Random) -> tuple[Problem, State]:
    """Return a problem and a state: a random order run for a random time, after which times and transfers change."""
    devices, keys, microbatches = random.choice(_SHAPES)
    pieces = {"sequence_chunks": 2} if random.random() < 0.3 else {}
    microbatches = microbatches if not pieces or keys.get("placement") == "bidirectional" else 1
    split = not pieces and random.random() < 0.5

    def times() -> dict[str, object]:
        found: dict[str, object] = {key: random.randint(0, 4) for key in ("forward", "backward", "transfer")}
        return found | ({"weight": random.randint(0, 3), "fused": random.randint(0, 6)} if split else {})

    memory: dict[str, object] = {"activation": random.randint(1, 2)}
    memory |= {"kept_for_later": random.randint(0, 1)} if pieces else {}
    memory |= {"freed_by_backward": random.choice((0, 1, -1))} if split else {}
    keys = keys | pieces
    before = problem(devices, microbatches, times=times(), memory=memory, **keys)
    order = random_order(before, random, kinds=always if pieces else None)
    timeline = simulate(before, order)
    now = random.randint(0, measure(timeline).makespan_ticks)
    ran = {Task(p): Ran(timeline.start(p), timeline.end(p)) for p in order.passes() if timeline.start(p) <= now}
    changed = problem(devices, microbatches, times=times(), memory=memory, **keys)
    if random.random() < 0.7:
        peaks = measure(timeline).peak_quanta
        changed = replace(changed, pools=tuple(Pool(peak + random.randint(0, 1)) for peak in peaks))
    return changed, State(now, ran)


def tiny_state_in_span(random: Random) -> tuple[Problem, State]:
    """Return a problem and state of any other kind for the objective span, with at most one device that has not
    begun."""
    while True:
        kinds = (tiny_state, tiny_state_of_tasks, tiny_state_of_memory, tiny_state_of_gathers)
        one, state = random.choice(kinds)(random)
        if sum(state.opening(one, device) is None for device in range(one.devices)) <= 1:
            return replace(one, objective=Objective.SPAN), state


def _run_for_a_while(orders: _Orders, random: Random, most: int = 6) -> tuple[dict[Task, Ran], int]:
    """Return random tasks run with random durations, by task, and the tick at which the last of them began."""
    ran, now = dict[Task, Ran](), 0
    for _ in range(random.randint(0, most)):
        able = list(orders.able({task: end for task, (_, end) in ran.items()}, now))
        if able:
            task, now = random.choice(able)
            ran[task] = Ran(now, now + random.randint(0, 4))
    return ran, now


def tiny_state_of_tasks(random: Random) -> tuple[Problem, State]:
    """Return a problem of passes of several tasks, reductions and steps among them, and a state of it."""
    one = tiny_reductions(random) if random.random() < 0.4 else tiny_tasks(random)
    one = replace(one, objective=Objective.ITERATION if one.network.has_collectives else Objective.MAKESPAN)
    pairs = [(s, j) for s in range(one.placement.stages) for j in one.microbatches_of[s]]
    orders = _Orders(0)
    orders.play(Game(one, frozenset(pair for pair in pairs if not one.splittable or random.random() < 0.5)))
    ran, now = _run_for_a_while(orders, random)
    return one, State(now + random.randint(0, 2), ran)


def tiny_state_of_norms(random: Random) -> tuple[Problem, State]:
    """Return a problem whose steps wait for the norm of all gradients, and a state in which the norm may have ended."""
    while True:
        one = replace(tiny_norms(random), objective=Objective.ITERATION)
        if not one.network.options and norm_of(one) is not None and not any(stage.gather for stage in one.stages):
            break
    pairs = [(s, j) for s in range(one.placement.stages) for j in one.microbatches_of[s]]
    orders = _Orders(0)
    orders.play(Game(one, frozenset(pair for pair in pairs if not one.splittable or random.random() < 0.5)))
    ran, now = _run_for_a_while(orders, random, 40)
    return one, State(now + random.randint(0, 2), ran)


def tiny_state_of_memory(random: Random) -> tuple[Problem, State]:
    """Return a problem of activations that are kept, offloaded or recomputed, and a state that names those
    recomputed."""
    one = replace(tiny_memory(random), objective=Objective.MAKESPAN)
    pairs = [(s, j) for s in range(one.placement.stages) for j in one.microbatches_of[s]]
    saving, orders = random.choice(list(savings(one, pairs))), _Orders(0)
    fused = frozenset(pair for pair in pairs if not one.splittable or random.random() < 0.5)
    orders.play(Game(one, fused, saving))
    ran, now = _run_for_a_while(orders, random)
    begun = {task.of[1:] for task in ran if task.of.kind is F}
    recomputed = {pair: mode for pair, mode in saving.items() if mode in RECOMPUTATIONS and pair in begun}
    return one, State(now + random.randint(0, 2), ran, recomputed)


def tiny_state_of_gathers(random: Random) -> tuple[Problem, State]:
    """Return a problem of parameters gathered up to three times, with little memory, and a state with some gathered."""
    one = replace(tiny_gathers(random), objective=Objective.ITERATION)
    pairs = [(s, j) for s in range(one.placement.stages) for j in one.microbatches_of[s]]
    fused = frozenset(pair for pair in pairs if not one.splittable or random.random() < 0.5)
    orders = _Orders(0)
    orders.play(Game(one, fused, None, random.choice(list(gather_counts(one)))))
    ran, now = _run_for_a_while(orders, random)
    return one, State(now + random.randint(0, 2), ran)


def _as_often(one: Problem, state: State) -> Iterator[dict[int, int]]:
    """Yield counts of gathers by stage, none less than those that have begun."""
    begun = {task.of for task in state.ran}
    for counts in gather_counts(one):
        if all(sum(p.kind is UNSHARD and p.stage == stage for p in begun) <= n for stage, n in counts.items()):
            yield counts


def _may_save(state: State, begun: Set[Pass], pair: tuple[int, int], mode: PassKind | None) -> bool:
    """Return True if the activation of this (stage, micro-batch) can still be in this mode, given the passes begun."""
    again = mode if mode in RECOMPUTATIONS else None
    if Pass(F, *pair) in begun and again != state.recomputed.get(pair):
        return False
    if any(Pass(kind, *pair) in begun for kind in (OFFLOAD, RELOAD)) and mode is not OFFLOAD:
        return False
    if any(Pass(kind, *pair) in begun for kind in (B, BW)):
        return mode is None or Pass(RELOAD if mode is OFFLOAD else mode, *pair) in begun
    return True


def least_end(one: Problem, state: State, most: int = 200_000) -> int | None:
    """Return the least makespan, or span, over all orders and modes of the remaining tasks, in ticks.

    None if memory lets no order run to its end. For a span a device that has not begun may do so at any tick.
    ValueError where there are more than `most` beginnings of orders.
    """
    begun = {task.of for task in state.ran}
    pairs = [(s, j) for s in range(one.placement.stages) for j in one.microbatches_of[s]]
    may_fuse = [
        (True,) if Pass(BW, *pair) in begun or not one.splittable else
        (False,) if Pass(B, *pair) in begun else (True, False)
        for pair in pairs
    ]  # fmt: skip
    first = {device: state.opening(one, device) for device in range(one.devices)}
    found = _Orders(most, one, first if one.objective == Objective.SPAN else {})
    for fusing, saving, gathers in product(product(*may_fuse), list(savings(one, pairs)), list(_as_often(one, state))):
        if not all(_may_save(state, begun, pair, saving.get(pair)) for pair in pairs):
            continue
        game = Game(one, frozenset(pair for pair, fused in zip(pairs, fusing, strict=True) if fused), saving, gathers)
        found.play(game)
        found.try_all({task: end for task, (_, end) in state.ran.items()}, state.now)
    return found.best


class _Orders:
    """A search that places tasks in the order of their starts, each as soon as predecessors, stream and memory allow.

    `most` limits the number of partial orders tried; `first` has the start of each device for a span (None: not begun).
    """

    def __init__(self, most: int, one: Problem | None = None, first: Mapping[int, int | None] | None = None) -> None:
        self._left, self._one, self._first = most, one, first or {}
        self.best: int | None = None
        self._since: dict[int, int] = {}  # devices that have not begun start no sooner

    def play(self, game: Game) -> None:
        self._game = game
        self._needs: dict[Task, list[tuple[Task, int]]] = {task: [] for task in game.ticks}
        for (before, after), lag in game.lags.items():
            self._needs[after].append((before, lag))

    def try_all(self, ends: dict[Task, int], now: int) -> None:
        """Try every continuation at tick `now` or later, and put the least value into `best`; `ends` are the ends of
        tasks so far.

        Raises `ValueError` if there are too many orders.
        """
        late = [device for device, since in self._first.items() if since is None and device not in self._since]
        if late:
            ample = now + sum(self._game.ticks.values()) + sum(self._game.lags.values())
            for since in range(now, ample + 1):
                self._since[late[0]] = since
                self.try_all(ends, now)
            del self._since[late[0]]
            return
        self._left -= 1
        if self._left < 0:
            raise ValueError("too many orders")
        end = self._value(ends)
        if self.best is not None and end >= self.best:
            return
        if len(ends) == len(self._game.ticks):
            self.best = end
        for task, start in self.able(ends, now):
            self.try_all(ends | {task: start + self._game.ticks[task]}, start)

    def _value(self, ends: Mapping[Task, int]) -> int:
        """Return the last end, or for a span the longest time from a device's start to its end, in ticks."""
        begin: dict[int, int] = {device: since for device, since in self._first.items() if since is not None}
        if not self._first or self._one is None:
            return max(ends.values(), default=0)
        for task, end in ends.items():
            begin.setdefault(self._one.device(task.of), end - self._game.ticks[task])
        return max((end - begin[self._one.device(task.of)] for task, end in ends.items()), default=0)

    def able(self, ends: Mapping[Task, int], now: int) -> Iterator[tuple[Task, int]]:
        """Yield the tasks that can come next, each with its start tick."""
        game = self._game
        for task in game.ticks:
            if task not in ends and all(before in ends for before, _ in self._needs[task]):
                own = {*game.streams_of(task)}
                free = [ends[other] for other in ends if own.intersection(game.streams_of(other))]
                there = self._there(task, ends)
                if there is None:
                    continue
                free.append(there)
                since = self._since.get(self._one.device(task.of), now) if self._one else now
                start = max([now, since, *free, *(ends[before] + lag for before, lag in self._needs[task])])
                times = sorted({start, *(other for other in ends.values() if other > start)})
                yield from islice(((task, at) for at in times if self._fits(task, at, ends)), 1)

    def _there(self, task: Task, ends: Mapping[Task, int]) -> int | None:
        """Return the tick from which a task has its stage's gathered parameters, or can drop them; None if they are not
        gathered.

        It is 0 for tasks that need none.
        """
        game, stage = self._game, self._game.holder(task.of.stage)
        if stage not in game.gaps or not (task.of.kind is RESHARD or game.computes_with(task.of, stage)):
            return 0
        begun = sorted(one for one in ends if one.of.kind is UNSHARD and one.of.stage == stage)
        if task.of.kind is RESHARD:
            return max([0, *(end for one, end in ends.items() if game.computes_with(one.of, stage))])
        dropped = sum(one.of.kind is RESHARD and one.of.stage == stage for one in ends)
        return ends[begun[-1]] if len(begun) > dropped else None

    def _fits(self, task: Task, start: int, ends: Mapping[Task, int]) -> bool:
        """Return True if memory suffices for a task to start at a tick, where the tasks in `ends` have begun."""
        for memory, room in self._game.rooms.items():
            here = [own for own in self._game.holdings if own.memory == memory]
            takes = sum(own.takes for own in here if task in own.begins and not ends.keys() & own.begins)
            level = sum(own.takes for own in here if ends.keys() & own.begins)
            level -= sum(own.gives for own in here if all(ends.get(one, start + 1) <= start for one in own.ends))
            if room is not None and takes and level + takes > room:
                return False
        return True
