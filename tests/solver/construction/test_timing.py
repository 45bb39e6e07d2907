"""Times for a given order: exactly as good as any."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.partition import Partition
from pipesched.problem import placement
from pipesched.problem.blocks import Blocks
from pipesched.problem.passes import Pass, PassKind
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import block_ticks
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.timing import retimed, times_within
from solver.solve import solve
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.makers import visit
from tests.support.tiny_problem import tiny_problem

objectives = pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))


def has_times(problem: Problem, schedule: Schedule, value: int) -> bool:
    """Bellman-Ford: whether starts exist that keep the order, the needs and the objective's value."""
    passes = list(schedule.passes())
    ticks = {p: problem.duration(p) for p in passes}
    # (a, b, w): b starts at least w after a starts.
    later: list[tuple[Pass | None, Pass | None, int]] = [(None, p, 0) for p in passes]
    for order in schedule.orders:
        for slot in order:
            block = block_ticks(problem, slot)
            if block is not None:
                ticks.update(dict.fromkeys(slot, block))
                later += [(slot[0], slot[1], 0), (slot[1], slot[0], 0)]
            elif len(slot) == 2:
                later.append((slot[0], slot[1], ticks[slot[0]]))
        for one, other in pairwise(order):
            later.append((one[-1], other[0], ticks[one[-1]]))
        if order and problem.objective == Objective.SPAN:
            first, last = order[0][0], order[-1][-1]
            later.append((last, first, ticks[last] - value))
        elif order:
            later.append((order[-1][-1], None, ticks[order[-1][-1]] - value))
    for p in passes:
        later += [
            (before, p, ticks[before] + lag) for before, lag in problem.network.predecessors(p, schedule.pass_set)
        ]
    start: dict[Pass | None, int] = {None: 0, **dict.fromkeys(passes, 0)}
    for _ in range(len(start) + 1):
        settled = True
        for a, b, w in later:
            if start[b] < start[a] + w:
                start[b], settled = start[a] + w, False
        if settled:
            return start[None] == 0
    return False


def some_order(problem: Problem, random: Random) -> Schedule:
    """Any order without deadlock: passes drawn one after the other among those whose needs are met, and blocks."""
    fused = {(s, j): not problem.splittable or random.random() < 0.5 for s in range(problem.placement.stages)
             for j in problem.microbatches_of[s]}  # fmt: skip
    left = [p for (s, j), whole in fused.items() for p in visit(s, j, whole)]
    every = frozenset(left)
    orders: list[list[tuple[Pass, ...]]] = [[] for _ in range(problem.devices)]
    while left:
        waiting = set(left)
        ready = [p for p in left if not any(before in waiting for before, _ in problem.network.predecessors(p, every))]
        pairs = [
            (f, b) for f in ready for b in ready if problem.device(f) == problem.device(b) and f.kind is PassKind.F
        ]
        blocks = [pair for pair in pairs if problem.overlapped_ticks(*pair) is not None]
        slot = random.choice(blocks) if blocks and random.random() < 0.7 else (random.choice(ready),)
        orders[problem.device(slot[0])].append(slot)
        left = [q for q in left if q not in slot]
    return Schedule(tuple(map(tuple, orders)), "some")  # type: ignore[arg-type]


# Here no order is searched for, so the problems may be larger.
LARGER = (
    (placement.linear(3), 3, 3),
    (placement.linear(5), 4, 4),
    (placement.v_shape(3), 2, 2),
    (placement.bidirectional(4), 4, 4),
    (placement.explicit(4, [2, 0, 3, 1, 0]), 3, 3),
)


@objectives
@pytest.mark.parametrize("seed", daily(range(30), 3))
def test_times_within_a_value_are_found_exactly_where_they_exist(seed: int, objective: Objective) -> None:
    random = Random(seed)
    problem = replace(tiny_problem(random, LARGER), objective=objective)
    blocks = tuple(random.randint(0, 9) for _ in range(problem.placement.stages))
    problem = problem.with_room((None,) * problem.devices)
    problem = problem.with_stages(blocks=[Blocks(one if seed % 3 == 0 else None) for one in blocks])
    schedule = some_order(problem, random)
    most = measure(simulate(problem, schedule)).value_ticks(objective)
    for value in range(max(0, most - 12), most + 2):
        timeline = times_within(problem, schedule, value)
        assert (timeline is not None) == has_times(problem, schedule, value)
        if timeline is not None:
            assert validate(timeline) == []
            assert measure(timeline).value_ticks(objective) <= value


def test_an_order_cannot_run_where_the_norm_of_gradients_is_a_pass_of_another_stage() -> None:
    """With the frozen layer alone on the first stage the norm is a pass of the second."""
    layer = {"forward": 2, "backward": 3, "weight": 1, "activation": 1, "step": 1}
    layers = [{"name": "first", "frozen": True, **layer}, {"name": "later", "count": 2, **layer}]
    parameters = {"step": {}, "norm": {"time": 3}}
    document = {"devices": 2, "microbatches": 2, "layers": layers, "placement": "linear", "parameters": parameters}
    plan = plan_problem_from({**document, "objective": "iteration"})
    frozen, trained = (plan.problem(plan.choices[0], Partition(counts)) for counts in ((1, 2), (2, 1)))
    timeline = solve(frozen, counted(1)).timeline
    assert timeline is not None
    assert retimed(frozen, timeline) is not None
    assert retimed(trained, timeline) is None
