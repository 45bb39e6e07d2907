"""Times for a given order: exactly as good as any."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from pipesched.problem import placement
from pipesched.problem.passes import Pass, PassKind, parse_pass
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.schedule.timeline import block_ticks
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.timing import best_times, times_within
from tests.support.brute_force import tiny_problem
from tests.support.columns import Costs, Memory, build
from tests.support.makers import visit

objectives = pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))


def test_best_times_begin_late_where_a_device_would_wait_after_its_first_pass() -> None:
    """All forwards first: stage 1 gets micro-batch 0 at 5 and micro-batch 1 at 10; it may as well begin at 9."""
    costs = Costs((5, 1), (1, 1), None, (1, 1), (0, 0))
    problem = build(placement.linear(2), 2, costs, Memory((1, 1), (0, 0), (None, None)), Objective.SPAN)
    words = ("F0.0 F0.1 BW0.0 BW0.1", "F1.0 F1.1 BW1.0 BW1.1")
    schedule = schedule_of([map(parse_pass, word.split()) for word in words])
    first = parse_pass("F1.0")
    assert simulate(problem, schedule).start(first) == 5
    assert best_times(problem, schedule).start(first) == 9
    makespan = replace(problem, objective=Objective.MAKESPAN)
    assert best_times(makespan, schedule).start(first) == 5


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
        if order and problem.objective is Objective.SPAN:
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
@pytest.mark.parametrize("seed", range(30))
def test_times_within_a_value_are_found_exactly_where_they_exist(seed: int, objective: Objective) -> None:
    random = Random(seed)
    problem = replace(tiny_problem(random, LARGER), objective=objective)
    blocks = tuple(random.randint(0, 9) for _ in range(problem.placement.stages))
    problem = problem.with_room((None,) * problem.devices)
    problem = problem.with_stages(overlapped=blocks if seed % 3 == 0 else [None] * len(blocks))
    schedule = some_order(problem, random)
    most = measure(simulate(problem, schedule)).value_ticks(objective)
    for value in range(max(0, most - 12), most + 2):
        timeline = times_within(problem, schedule, value)
        assert (timeline is not None) == has_times(problem, schedule, value)
        if timeline is not None:
            assert validate(timeline) == []
            assert measure(timeline).value_ticks(objective) <= value


def test_an_overlapped_order_is_drawn_now_and_then() -> None:
    """So that the test above covers blocks."""
    drawn = 0
    for seed in range(150):
        random = Random(seed)
        problem = tiny_problem(random)
        problem = problem.with_stages(overlapped=(1,) * problem.placement.stages)
        drawn += any(len(slot) == 2 for order in some_order(problem, random).orders for slot in order)
    assert drawn > 15
