"""Orders of tasks on several streams: simulator and validator against times worked out from the definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import B, F, Pass, Task
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.columns import with_tasks
from tests.support.makers import (
    jobs,
    problem,
    random_order,
    random_problem,
    schedule,
    times_by_hand,
    with_parts,
    with_random_task_orders,
)

TIMES = {"forward": 3, "backward": 3, "weight": 1}


@pytest.mark.parametrize("seed", range(75))
def test_any_order_of_tasks_takes_the_times_of_the_definitions(seed: int) -> None:
    rng = Random(seed)
    one = with_parts(random_problem(rng), rng)
    orders = with_random_task_orders(one, random_order(one, rng, pairs=0.4), rng)
    expected = times_by_hand(one, orders)
    timeline = simulate(one, orders)
    assert dict(timeline.starts) == expected
    assert {violation.rule for violation in validate(timeline)} <= {"memory"}


@pytest.mark.parametrize("seed", range(50))
def test_two_tasks_exchanged_in_time_alone_break_a_rule(seed: int) -> None:
    """The schedule keeps its orders and the times are those of other orders: valid only if those run alike."""
    rng = Random(seed)
    one = with_parts(random_problem(rng), rng)
    orders = random_order(one, rng, pairs=0.4)
    first, second = (with_random_task_orders(one, orders, rng) for _ in range(2))
    moved = replace(simulate(one, first), schedule=second)
    by_order = all(
        moved.starts[task] + ticks(one, moved.schedule, task) <= moved.starts[other]
        for tasks in second.task_orders.values()
        for task, other in pairwise(tasks)
    )
    kept = all(moved.starts[w.before] + ticks(one, second, w.before) <= moved.starts[w.after] for w in second.waits)
    found = {violation.rule for violation in validate(moved)} - {"memory"}
    # Tasks without length may still wait for each other in a cycle.
    assert found <= {"order"} if by_order and kept else found


def ticks(one, orders, task):  # type: ignore[no-untyped-def]
    return next(job.ticks for order in orders.orders for job in jobs(one, order) if task in job.tasks)


def two_streams() -> tuple[Schedule, Schedule]:
    """Two forwards of attention, exchange, expert: as passes, and with the second's attention in the first's exchange."""
    plain = schedule("F0.0 F0.1 BW0.0 BW0.1")
    f, g = Pass(F, 0, 0), Pass(F, 0, 1)
    rest = [Task(p) for p in plain.orders[0][2] + plain.orders[0][3]]
    compute = (Task(f, 0), Task(g, 0), Task(f, 2), Task(g, 2), *rest)
    mixed = {Resource(0, COMPUTE): compute, Resource(0, "ep"): (Task(f, 1), Task(g, 1))}
    return plain, Schedule(plain.orders, "mixed", mixed)


def test_tasks_of_two_micro_batches_interleave() -> None:
    one = with_tasks(problem(1, 2, times={"forward": 9, "backward": 1}), {(F, 0): (
        TaskSpec(COMPUTE, 2), TaskSpec("ep", 2), TaskSpec(COMPUTE, 2))})  # fmt: skip
    plain, mixed = (simulate(one, orders) for orders in two_streams())
    assert [plain.end(Pass(F, 0, j)) for j in range(2)] == [6, 12]
    assert [mixed.end(Pass(F, 0, j)) for j in range(2)] == [6, 8]
    assert validate(mixed) == []


@pytest.mark.parametrize("gone", [0, 1])
def test_an_order_of_tasks_that_is_not_whole_is_found(gone: int) -> None:
    one = with_tasks(problem(1, 2, times={"forward": 9, "backward": 1}), {(F, 0): (
        TaskSpec(COMPUTE, 2), TaskSpec("ep", 2), TaskSpec(COMPUTE, 2))})  # fmt: skip
    _, mixed = two_streams()
    timeline = simulate(one, mixed)
    orders = dict(mixed.task_orders)
    where = sorted(orders)[gone]
    orders[where] = orders[where][1:]
    fewer = replace(timeline, schedule=Schedule(mixed.orders, "", orders))
    assert [violation.rule for violation in validate(fewer)] == ["complete"]
    stranger = {**mixed.task_orders, where: (*mixed.task_orders[where], Task(Pass(B, 0, 0)))}
    with pytest.raises(BadInput, match=r"B0\.0"):
        simulate(one, Schedule(mixed.orders, "", stranger))


def test_a_wait_between_streams_holds_and_may_lock() -> None:
    one = problem(2, 1, times=TIMES)
    orders = schedule("F0.0 B0.0 W0.0", "F1.0 B1.0 W1.0")
    w0, w1 = Task(Pass(F, 0, 0)._replace(kind=B)), Task(Pass(B, 1, 0))
    late = Schedule(orders.orders, "", waits=[Wait(Task(orders.orders[1][2][0]), w0)])
    timeline = simulate(one, late)
    assert timeline.start(w0.of) == timeline.end(orders.orders[1][2][0]) == 10
    assert [v.rule for v in validate(replace(simulate(one, orders), schedule=late))] == ["precedence"]
    with pytest.raises(Deadlock):
        simulate(one, Schedule(orders.orders, "", waits=[Wait(w0, w1)]))
