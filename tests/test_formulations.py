"""The exact model: each rule means the same as a check and as rows, and its optimum is the true one."""

from __future__ import annotations

from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.model import Model
from formulations.operations import Operation
from pipesched.errors import Deadlock
from pipesched.passes import BW, B, Pass, Task, W
from pipesched.problem import Problem
from pipesched.schedule import Schedule, schedule_of
from pipesched.simulator import simulate
from pipesched.timeline import Timeline
from pipesched.validator import validate
from tests.makers import problem, random_order


def random_timeline(one: Problem, chance: Random) -> Timeline:
    """A random order with random starts that keep it: valid in some cases, broken in one or more rules in others."""
    orders = _orders(one, chance)
    starts: dict[Task, int] = {}
    if chance.random() < 0.6:
        try:
            soonest = simulate(one, schedule_of(orders))
        except Deadlock:
            return random_timeline(one, chance)
        moved = chance.choice(sorted(soonest.starts)) if chance.random() < 0.5 else None
        by = chance.choice((-1, 1))
        starts = {task: max(0, start + by * (task == moved)) for task, start in soonest.starts.items()}
        return Timeline(one, soonest.schedule, starts)
    for order in orders:
        clock = chance.randrange(3)
        for p in order:
            starts[Task(p)] = clock
            clock += max(1, one.duration(p) - chance.choice((0, 0, 0, 1))) + chance.choice((0, 0, 1, 3))
    return Timeline(one, schedule_of(orders), starts)


def _orders(one: Problem, chance: Random) -> list[list[Pass]]:
    """A random order; where fused backwards never pay, so that the model leaves them out, they are split."""
    schedule: Schedule = random_order(one, chance)
    orders: list[list[Pass]] = []
    for device in range(one.devices):
        order: list[Pass] = []
        for p in schedule.passes_on(device):
            if p.kind is BW and one.fused_is_dominated(p.stage):
                order += [Pass(B, p.stage, p.microbatch), Pass(W, p.stage, p.microbatch)]
            else:
                order.append(p)
        for p in [p for p in order if p.kind is W]:
            at = order.index(p)
            order.insert(chance.randint(at, len(order) - 1), order.pop(at))
        orders.append(order)
    return orders


def feasible(constraints: list[Constraint], timeline: Timeline, literals: bool) -> bool:
    """Whether the rows of the constraints admit the timeline: its starts, kinds of backward, and order are fixed."""
    model = Model(timeline.problem, most_literals=10**6 if literals else -1)
    for constraint in constraints:
        constraint.post(model)
    place = {p: (device, at) for device in range(timeline.problem.devices)
             for at, p in enumerate(timeline.schedule.passes_on(device))}  # fmt: skip
    where: dict[Operation, tuple[int, int, bool]] = {}
    for p, (device, at) in place.items():
        operation = Operation(B if p.kind is BW else p.kind, p.stage, p.microbatch)
        where[operation] = (device, at, False)
        model.cp.add(model.start[operation] == timeline.start(p) * model.scale)
        weight = Operation(W, p.stage, p.microbatch)
        if p.kind is BW and weight in model.start:
            where[weight] = (device, at, True)
            model.cp.add(model.start[weight] == timeline.end(p) * model.scale)
    for (stage, j), fused in model.fused.items():
        if not isinstance(fused, bool):
            model.cp.add(fused == timeline.schedule.is_fused(stage, j))
        elif fused is not timeline.schedule.is_fused(stage, j):
            return False
    for device in model.devices_in_order:
        for x, y, ahead in device.undecided():
            model.cp.add(ahead == (where[x] < where[y]))
        for x in device.operations:
            for y in device.operations:
                if x != y and device.before(x, y) is True and where[x] > where[y]:
                    return False
    return cp_model.CpSolver().solve(model.cp) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def small_problem(chance: Random) -> Problem:
    """Two micro-batches on two devices, one or two chunks, memory for one to three activations."""
    shape = chance.choice(["linear", "linear", "v-shape"])
    stages = 2 if shape == "linear" else 4

    def draw(most: int) -> list[int]:
        return [chance.randint(1, most) for _ in range(stages)]

    times = {"forward": draw(2), "backward": draw(2), "weight": draw(2), "transfer": chance.randint(0, 1)}
    if chance.random() < 0.5:
        times["fused"] = draw(3)
    memory = {"activation": 2, "freed_by_backward": chance.choice([-1, 0, 1, 2]), "capacity": chance.randint(4, 8)}
    return problem(2, 2, placement=shape, times=times, memory=memory)


@pytest.mark.parametrize("literals", [True, False], ids=["order literals", "intervals"])
def test_all_rules_together_say_what_the_validator_says(literals: bool) -> None:
    seen = {True: 0, False: 0}
    for seed in range(250):
        chance = Random(seed)
        timeline = random_timeline(small_problem(chance), chance)
        checks = all(constraint.check(timeline) for constraint in CONSTRAINTS)
        in_line = CONSTRAINTS["in line"].check(timeline)
        assert checks == (in_line and not validate(timeline)), (seed, validate(timeline))
        assert feasible(list(CONSTRAINTS), timeline, literals) == checks, seed
        seen[checks] += 1
    assert min(seen.values()) > 10


@pytest.mark.parametrize("name", ["precedence", "one at a time", "fused or split", "in line"])
def test_each_rule_alone_is_the_same_as_check_and_as_rows(name: str) -> None:
    constraint = CONSTRAINTS[name]
    seen = {True: 0, False: 0}
    for seed in range(300):
        chance = Random(1000 + seed)
        timeline = random_timeline(small_problem(chance), chance)
        said = constraint.check(timeline)
        assert feasible([constraint], timeline, literals=False) == said, seed
        seen[said] += 1
    assert seen[True] > 10
    assert seen[False] > 10 or name == "fused or split"
