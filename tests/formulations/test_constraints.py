"""The exact model: each rule means the same as a check and as rows, and its optimum is the true one."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from ortools.sat.python import cp_model

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from pipesched.errors import Deadlock
from pipesched.files.problem_file import problem_from
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, Pass, Task, W, parse_pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.daily import DAY
from tests.support.makers import problem, random_order, schedule
from tests.support.task_brute_force import tiny_gathers, tiny_tasks


def random_timeline(one: Problem, rng: Random, in_microbatch_order: bool = False) -> Timeline:
    """A random order with random starts that keep it: valid in some cases, broken in one or more rules in others.

    With `in_microbatch_order`, passes of one kind and stage are in the order of their micro-batches.
    """
    orders = [_in_microbatch_order(order) if in_microbatch_order else order for order in _orders(one, rng)]
    starts: dict[Task, int] = {}
    if rng.random() < 0.6:
        try:
            soonest = simulate(one, schedule_of(orders))
        except Deadlock:
            return random_timeline(one, rng, in_microbatch_order)
        moved = rng.choice(sorted(soonest.starts)) if rng.random() < 0.5 else None
        by = rng.choice((-1, 1))
        starts = {task: max(0, start + by * (task == moved)) for task, start in soonest.starts.items()}
        return Timeline(one, soonest.schedule, starts)
    for order in orders:
        clock = rng.randrange(3)
        for p in order:
            starts[Task(p)] = clock
            clock += max(1, one.duration(p) - rng.choice((0, 0, 0, 1))) + rng.choice((0, 0, 1, 3))
    if max(starts.values()) > Model(jobs_of(one), most_literals=-1).horizon:  # no rule: the model's variables end there
        return random_timeline(one, rng, in_microbatch_order)
    return Timeline(one, schedule_of(orders), starts)


def _orders(one: Problem, rng: Random) -> list[list[Pass]]:
    """A random order; where fused backwards never pay, so that the model leaves them out, they are split."""
    schedule: Schedule = random_order(one, rng)
    orders: list[list[Pass]] = []
    for device in range(one.devices):
        order: list[Pass] = []
        for p in schedule.passes_on(device):
            if p.kind is BW and fused_is_dominated(one, p.stage):
                order += [Pass(B, p.stage, p.microbatch), Pass(W, p.stage, p.microbatch)]
            else:
                order.append(p)
        for p in [p for p in order if p.kind is W]:
            at = order.index(p)
            order.insert(rng.randint(at, len(order) - 1), order.pop(at))
        orders.append(order)
    return orders


def _in_microbatch_order(order: list[Pass]) -> list[Pass]:
    """The same order with the passes of every role and stage in the order of their micro-batches."""

    def role(p: Pass) -> tuple[str, int]:
        return ("B" if p.kind is BW else p.kind.value, p.stage)

    rising = {
        each: iter(sorted((p for p in order if role(p) == each), key=lambda p: p.microbatch))
        for each in map(role, order)
    }
    return [next(rising[role(p)]) for p in order]


def feasible(constraints: list[Constraint], timeline: Timeline, literals: bool) -> bool:
    """Whether the rows of the constraints admit the timeline: its starts, kinds of backward, and order are fixed."""
    jobs = jobs_of(timeline.problem)
    model = Model(jobs, most_literals=10**6 if literals else -1)
    for constraint in constraints:
        if constraint.posted_if is None or constraint.posted_if(jobs):
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
    for order in model.orders:
        for x, y, ahead in order.undecided():
            model.cp.add(ahead == (where[x] < where[y]))
        for x in order.operations:
            for y in order.operations:
                if x != y and order.before(x, y) is True and where[x] > where[y]:
                    return False
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model.cp) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def small_problem(rng: Random) -> Problem:
    """Two micro-batches on two devices, one or two chunks, memory for one to three activations."""
    shape = rng.choice(["linear", "linear", "v-shape"])
    stages = 2 if shape == "linear" else 4

    def draw(most: int) -> list[int]:
        return [rng.randint(1, most) for _ in range(stages)]

    times = {"forward": draw(2), "backward": draw(2), "weight": draw(2), "transfer": rng.randint(0, 1)}
    if rng.random() < 0.5:
        times["fused"] = draw(3)
    memory = {"activation": 2, "freed_by_backward": rng.choice([-1, 0, 1, 2]), "capacity": rng.randint(4, 8)}
    return problem(2, 2, placement=shape, times=times, memory=memory)


@cache
def numbered_timeline(seed: int, in_microbatch_order: bool) -> Timeline:
    """The same for all rules."""
    rng = Random(seed)
    return random_timeline(small_problem(rng), rng, in_microbatch_order=in_microbatch_order)


@pytest.mark.parametrize("literals", [True, False], ids=["order literals", "intervals"])
def test_all_rules_together_say_what_the_validator_says(literals: bool) -> None:
    added = [constraint for constraint in CONSTRAINTS if not constraint.of_problem]
    seen = {True: 0, False: 0}
    for seed in range(60):
        rng = Random(seed)
        timeline = random_timeline(small_problem(rng), rng)
        checks = all(constraint.check(timeline) for constraint in CONSTRAINTS)
        broken = validate(timeline)
        assert checks == (not broken and all(constraint.check(timeline) for constraint in added)), (seed, broken)
        assert feasible(list(CONSTRAINTS), timeline, literals) == checks, seed
        seen[checks] += 1
    assert min(seen.values()) > 2


# What a rule takes for granted, since another one says it: order literals say nothing of passes that overlap in time,
# and what always precedes what has no literal. (rule, order literals) -> rules that must hold for the two to be equal.
GRANTED = {
    ("memory", True): ("no overlap", "precedence", "micro-batch order", "fused or split"),
    ("no overlap", True): ("precedence", "micro-batch order", "memory"),
    ("precedence", True): ("micro-batch order", "no overlap", "memory"),
    ("micro-batch order", True): ("precedence", "no overlap", "memory"),
    ("memory", False): ("precedence", "fused or split"),
    ("fused or split", False): ("precedence",),
}
BY_LITERALS = ("precedence", "micro-batch order", "no overlap", "memory")  # and any other rule


def granted(rule: Constraint, literals: bool) -> list[Constraint]:
    """The rules that a rule takes for granted."""
    return [CONSTRAINTS[name] for name in GRANTED.get((rule.name, literals), BY_LITERALS if literals else ())]


# Where all else holds, a backward that is both fused and split cannot be; and these problems gather nothing: of those that
# do, test_against_every_order says the same as all rules together.
NEVER_BROKEN_ALONE = ("fused or split", "gathers")


# Timelines that a rule admits, and as many that it does not, which are compared.
ENOUGH = 13


@pytest.mark.parametrize("literals", [True, False], ids=["order literals", "intervals"])
@pytest.mark.parametrize("name", CONSTRAINTS.names())
def test_each_rule_alone_is_the_same_as_check_and_as_rows(name: str, literals: bool) -> None:
    constraint = CONSTRAINTS[name]
    others = granted(constraint, literals)
    seen = {True: 0, False: 0}
    for seed in range(600):
        number = 1000 + (seed + 200 * DAY) % 600
        timeline = numbered_timeline(number, literals and name != "micro-batch order")
        said = constraint.check(timeline)
        if min(seen.values()) == ENOUGH or (seen[True] == ENOUGH and name in NEVER_BROKEN_ALONE):
            break
        if seen[said] < ENOUGH and all(other.check(timeline) for other in others):
            assert feasible([constraint], timeline, literals) == said, number
            seen[said] += 1
    assert seen[True] > 10
    assert seen[False] > 10 or name in NEVER_BROKEN_ALONE


def test_memory_of_a_host_is_checked() -> None:
    """Two activations are there together at most; with room for one alone the constraint is broken."""
    memory = {"capacity": 2, "decide": {"offload": "always"}}
    (rule,) = (one for one in CONSTRAINTS if one.name == "memory")
    document = {"devices": 1, "microbatches": 2, "times": {"forward": 4, "backward": 4}}
    for room, kept in ((2, True), (1, False)):
        one = problem_from(document | {"memory": memory | {"offload": {"out": 1, "in": 1, "host_capacity": room}}})
        row = ["F0.0", "O0.0", "F0.1", "O0.1", "L0.1", "BW0.1", "L0.0", "BW0.0"]
        orders: dict[Resource, tuple[Task, ...]] = {
            Resource(0, stream): tuple(Task(parse_pass(name)) for name in row if name[0] in kinds)
            for stream, kinds in (("compute", "FB"), ("d2h", "O"), ("h2d", "L"))
        }
        found = simulate(one, Schedule(schedule(" ".join(row)).orders, "", orders, []))
        assert rule.check(found) is kept


def test_a_rule_that_is_not_posted_would_add_no_row() -> None:
    adds_rows = dict[str, set[bool]]()
    for make in (small_problem, tiny_tasks, tiny_gathers):
        for seed in range(12):
            jobs = jobs_of(make(Random(seed)))
            for constraint in CONSTRAINTS:
                if constraint.posted_if is not None:
                    model = Model(jobs)
                    before = len(model.cp.proto.constraints)
                    constraint.post(model)
                    adds = len(model.cp.proto.constraints) > before
                    assert constraint.posted_if(jobs) or not adds, (constraint.name, make.__name__, seed)
                    adds_rows.setdefault(constraint.name, set()).add(adds)
    assert set(map(frozenset, adds_rows.values())) == {frozenset({False, True})}, adds_rows
