"""Builders for tests: small problems, hand-written and random orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from pipesched.files.problem_file import problem_from
from pipesched.problem.passes import BW, B, F, Pass, Slot, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.schedule import Schedule, parse_slot, schedule_of
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.columns import with_tasks
from tests.support.task_brute_force import Game, arcs_of, game_of

# Says of a stage and a micro-batch whether its backward runs fused (BW) rather than split (B, later W).
IsFused = Callable[[int, int], bool]

TIMES: Mapping[str, object] = {"forward": 1, "backward": 1, "weight": 1}
FULL: Mapping[str, object] = {"forward": 1, "backward": 2}  # a backward that cannot be split


def problem(devices: int, microbatches: int, **keys: object) -> Problem:
    """Return the problem of a file with these keys: forward, backward and weight take one tick unless `times` says
    more."""
    document = {"devices": devices, "microbatches": microbatches, "times": dict(TIMES)} | keys
    return problem_from(document, "test", "test")


def gpt_1_5b(devices: int, microbatches: int, activations: int, objective: str = "span") -> Problem:
    """Return the 1.5B profile of the Zero Bubble paper, with memory for `activations` activations a device."""
    return problem(
        devices,
        microbatches,
        times={"forward": 18.522, "backward": 18.086, "weight": 9.337, "transfer": 0.601},
        memory={"activation": 131, "freed_by_backward": 83, "capacity": 131 * activations},
        objective=objective,
    )


def schedule(*rows: str, name: str = "by-hand") -> Schedule:
    """Return a schedule from one text a device, such as `F0.0 F0.1 F0.2&BW0.0`."""
    return Schedule(tuple(tuple(map(parse_slot, row.split())) for row in rows), name)


def measured(one: Problem, order: Schedule) -> Metrics:
    """Return the metrics of an order, each pass as early as possible; asserts that no rule is broken."""
    timeline = simulate(one, order)
    assert validate(timeline) == []
    return measure(timeline)


def always(stage: int, microbatch: int) -> bool:
    return True


def visit(stage: int, microbatch: int, fused: bool) -> list[Pass]:
    """Return the passes of one micro-batch at one stage, the backward fused or split."""
    return [Pass(kind, stage, microbatch) for kind in ((F, BW) if fused else (F, B, W))]


def passes_of(one: Problem, is_fused: IsFused) -> list[list[Pass]]:
    """Return every pass of a problem, a list a device."""
    passes: list[list[Pass]] = [[] for _ in range(one.devices)]
    for stage, device in enumerate(one.placement.stage_device):
        for j in range(one.microbatches):
            if stage in one.chain_of(j):
                passes[device] += visit(stage, j, is_fused(stage, j))
    return passes


def random_kinds(one: Problem, rng: Random) -> IsFused:
    """Return a random choice of fused and split backwards; all are fused where no backward can be split."""
    fused = {
        (stage, j): not one.splittable or rng.random() < 0.5
        for stage in range(one.placement.stages)
        for j in range(one.microbatches)
    }
    return lambda stage, j: fused[stage, j]


def random_order(one: Problem, rng: Random, pairs: float = 0.0, kinds: IsFused | None = None) -> Schedule:
    """Return a random order that can run; `pairs` is the probability that a forward shares its slot with the backward
    after it."""
    is_fused = kinds or random_kinds(one, rng)
    needs = waits(one, is_fused)
    todo = {p for row in passes_of(one, is_fused) for p in row}
    orders: list[list[Pass]] = [[] for _ in range(one.devices)]
    while todo:
        ready = sorted(p for p in todo if not any(before in todo for before, _ in needs[p]))
        chosen = rng.choice(ready)
        orders[one.device(chosen)].append(chosen)
        todo.remove(chosen)
    paired = Schedule(tuple(_paired(order, rng, pairs) for order in orders), "random")
    game = game_of(one, paired)
    return schedule_of(orders, "random") if game.starts(arcs_of(game, paired)) is None else paired


def shuffled(one: Problem, rng: Random, pairs: float = 0.0) -> Schedule:
    """Return a random order of all passes, which mostly deadlocks."""
    orders = passes_of(one, random_kinds(one, rng))
    for order in orders:
        rng.shuffle(order)
    return Schedule(tuple(_paired(order, rng, pairs) for order in orders), "shuffled")


def _paired(order: list[Pass], rng: Random, pairs: float) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for p in order:
        last = slots[-1] if slots else ()
        if p.kind in (B, BW) and len(last) == 1 and last[0].kind is F and rng.random() < pairs:
            slots[-1] = (last[0], p)
        else:
            slots.append((p,))
    return tuple(slots)


PLACEMENTS: dict[str, Callable[[int], dict[str, object]]] = {
    "linear": lambda p: {"placement": "linear"},
    "interleaved": lambda p: {"placement": "interleaved", "chunks": 2},
    "wave": lambda p: {"placement": "wave", "chunks": 3},
    "v-shape": lambda p: {"placement": "v-shape"},
    "bidirectional": lambda p: {"placement": "bidirectional"},
    "explicit": lambda p: {"placement": [*range(p), p - 1, 0, p // 2]},
}


def random_problem(rng: Random, blocks: bool = True, parts: bool = True) -> Problem:
    """Return a problem of up to three devices and micro-batches on any placement, with times of 0 and more.

    Overlapped blocks (`blocks`) and passes of several tasks (`parts`) occur by chance.
    """
    devices = rng.randint(1, 3)
    keys = PLACEMENTS[rng.choice(sorted(PLACEMENTS))](devices)
    stages = problem(devices, 1, **keys).placement.stages

    def some(most: int) -> list[int]:
        return [rng.randint(0, most) for _ in range(stages)]

    times = {"forward": some(3), "backward": some(3), "transfer": some(2)}
    if rng.random() < 0.7:
        times |= {"weight": some(2), "fused": some(4)}
    if blocks and rng.random() < 0.5:
        times["overlapped"] = some(5)
    one = problem(devices, rng.randint(1, 3), **keys, times=times)
    if rng.random() < 0.3:
        one = replace(one, links=tuple(tuple(rng.randint(0, 2) for _ in range(devices)) for _ in range(devices)))
    return with_parts(one, rng) if parts and rng.random() < 0.3 else one


def with_parts(one: Problem, rng: Random) -> Problem:
    """Return the problem with some passes made of several tasks on several streams.

    Transfers become tasks too by chance, where there are no blocks.
    """
    kinds = (F, B, W, BW) if one.splittable else (F, BW)
    streams = (COMPUTE, "ep", "d2h")
    parts = {
        (kind, stage): tuple(TaskSpec(rng.choice(streams), rng.randint(0, 2)) for _ in range(rng.randint(1, 3)))
        for kind in kinds
        for stage in range(one.placement.stages)
        if rng.random() < 0.5
    }
    for (kind, stage), tasks in parts.items():
        if kind is W:
            after = [None, *range(len(parts.get((B, stage), (None,))))]
            parts[kind, stage] = tuple(task._replace(after=rng.choice(after)) for task in tasks)
    if rng.random() < 0.5 and not one.overlaps:
        one = replace(one, resources=replace(one.resources, transfer_stream=rng.choice(streams)))
    return with_tasks(one, parts)


def waits(one: Problem, is_fused: IsFused) -> dict[Pass, list[tuple[Pass, int]]]:
    """Return for each pass its predecessors, each with the ticks between its end and the pass's start."""
    pairs = ((stage, j) for stage, walked in enumerate(one.microbatches_of) for j in walked)
    game = Game(one, frozenset(pair for pair in pairs if is_fused(*pair)))
    found: dict[Pass, list[tuple[Pass, int]]] = {p: [] for p in game.passes}
    for (before, after), lag in game.lags.items():
        if before.of != after.of:
            found[after.of].append((before.of, lag))
    return found
