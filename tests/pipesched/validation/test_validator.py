"""The judge against the rules said a second time: each rule broken alone, and right timelines spoilt at random."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesched.problem.passes import BW, B, F, Pass, Slot, Task, W, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from tests.support.columns import with_tasks
from tests.support.makers import (
    jobs,
    problem,
    random_order,
    random_problem,
    shuffled,
    task_waits,
    times_by_hand,
)


def timed(one: Problem, *rows: str) -> Timeline:
    """One row a device: `F0.0@0 F0.1@2&BW0.0@2`."""
    starts: dict[Task, int] = {}
    orders: list[list[Slot]] = []
    for row in rows:
        orders.append([])
        for slot in row.split():
            timed_passes = [(parse_pass(p), int(start)) for p, start in (word.split("@") for word in slot.split("&"))]
            starts |= {Task(p): start for p, start in timed_passes}
            orders[-1].append(tuple(p for p, _ in timed_passes))  # type: ignore[arg-type]
    return Timeline(one, Schedule(tuple(map(tuple, orders))), starts)


# Two devices, two micro-batches; a block of four ticks on device 1; every device can hold two activations.
TIMES = {"forward": 1, "backward": 1, "weight": 2, "fused": 3, "transfer": 1, "overlapped": 4}
RIGHT = ("F0.0@0 F0.1@1 B0.0@8 W0.0@9 BW0.1@11", "F1.0@2 F1.1@3&BW1.0@3 BW1.1@7")


def two_devices() -> Problem:
    return problem(2, 2, times=TIMES, memory={"capacity": [2, 2]})


def found(timeline: Timeline) -> list[tuple[str, str]]:
    """The rules broken, each with its passes."""
    return [(violation.rule, " ".join(map(str, violation.passes))) for violation in validate(timeline)]


def spoilt(*changes: tuple[str, str]) -> tuple[str, ...]:
    rows = "\n".join(RIGHT)
    for old, new in changes:
        assert rows.count(old) == 1
        rows = rows.replace(old, new)
    return tuple(rows.split("\n"))


def test_the_right_timeline_is_right() -> None:
    assert validate(timed(two_devices(), *RIGHT)) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param(spoilt((" W0.0@9", "")), [("complete", "B0.0 F0.0")], id="no W"),
        pytest.param(spoilt((" BW1.1@7", "")), [("complete", "F1.1")], id="no backward"),
        pytest.param(spoilt(("F0.0@0 ", "")), [("complete", "B0.0 W0.0")], id="no F"),
        pytest.param(spoilt((" BW0.1@11", " BW0.1@11 BW0.1@11")), [("complete", "BW0.1")], id="twice"),
        pytest.param(spoilt(("BW0.1@11", "BW0.1@11 B0.1@14")), [("complete", "B0.1 BW0.1 F0.1")], id="B and BW"),
        pytest.param(spoilt(("BW0.1@11", "BW0.1@11 F0.2@14")), [("complete", "F0.2")], id="no such micro-batch"),
        pytest.param(spoilt(("BW0.1@11", "BW0.1@11 F2.0@14")), [("complete", "F2.0")], id="no such stage"),
        pytest.param(
            (RIGHT[0].replace(" BW0.1@11", ""), RIGHT[1] + " BW0.1@11"), [("placement", "BW0.1")], id="another device"
        ),
        pytest.param(RIGHT[:1], [("placement", "")], id="a device too few"),
        pytest.param((*RIGHT, ""), [("placement", "")], id="a device too many"),
        pytest.param(
            spoilt(("W0.0@9 BW0.1@11", "BW0.1@9&W0.0@11")), [("overlap", "BW0.1 W0.0")], id="slot of two backwards"
        ),
        pytest.param(spoilt(("F0.0@0 F0.1@1", "F0.0@0&F0.1@1")), [("overlap", "F0.0 F0.1")], id="slot of two forwards"),
        pytest.param(
            spoilt(("F1.1@3", "F1.1@4"), ("BW1.1@7", "BW1.1@8"), ("BW0.1@11", "BW0.1@12")),
            [("overlap", "F1.1 BW1.0")],
            id="torn",
        ),
        pytest.param(
            spoilt(("BW0.1@11", "BW0.1@10")),
            [("precedence", "BW1.1 BW0.1"), ("overlap", "W0.0 BW0.1")],
            id="two at a time",
        ),
        pytest.param(spoilt(("F0.0@0 F0.1@1", "F0.1@1 F0.0@0")), [("order", "F0.1 F0.0")], id="against the order"),
        pytest.param(spoilt(("F0.0@0", "F0.0@-1")), [("times", "F0.0")], id="before time 0"),
        pytest.param(spoilt(("F1.0@2", "F1.0@1")), [("precedence", "F0.0 F1.0")], id="F before its activation comes"),
        pytest.param(spoilt(("B0.0@8", "B0.0@7")), [("precedence", "BW1.0 B0.0")], id="no gradient yet: block"),
        pytest.param(spoilt(("B0.0@8 W0.0@9", "W0.0@6 B0.0@8")), [("precedence", "B0.0 W0.0")], id="W before B"),
        pytest.param(
            spoilt(("F1.0@2 F1.1@3&BW1.0@3", "F1.0@3 F1.1@3&BW1.0@3")),
            [("precedence", "F1.0 BW1.0"), ("overlap", "F1.0 F1.1")],
            id="backward before its F ends",
        ),
    ],
)
def test_each_rule_broken_is_found_with_its_passes(rows: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert found(timed(two_devices(), *rows)) == expected


def test_starts_that_are_missing_or_of_nothing() -> None:
    right = timed(two_devices(), *RIGHT)
    starts = dict(right.starts)
    del starts[Task(parse_pass("W0.0"))]
    starts[Task(parse_pass("W0.1"))] = 20
    starts[Task(parse_pass("F0.0"), 1)] = 1
    assert [v.text for v in validate(replace(right, starts=starts))] == [
        "W0.0 has no start",
        "F0.0/1 has a start but is not in the schedule",
        "W0.1 has a start but is not in the schedule",
    ]


def test_memory_is_told_once_a_device_in_the_unit_of_the_file() -> None:
    one = problem(1, 3, memory={"capacity": 1, "unit": "GiB"}, times={"forward": 1, "backward": 1})
    timeline = timed(one, "F0.0@0 F0.1@1 F0.2@2 BW0.0@3 BW0.1@4 BW0.2@5")
    (violation,) = validate(timeline)
    for fact in ("device 0", "2 GiB", "F0.1", "at 1", "capacity is 1"):
        assert fact in violation.text


def test_a_block_of_no_length_takes_its_turn_among_the_computations() -> None:
    """Wherever its forward would run alone."""
    one = problem(1, 3, times={"forward": 1, "backward": 4, "overlapped": 0})
    one = with_tasks(one, {(F, 0): (TaskSpec("ep", 1),)})
    assert found(timed(one, "F0.0@0 F0.1@1 BW0.0@2 F0.2@6&BW0.1@6 BW0.2@6")) == []
    assert found(timed(one, "F0.0@0 F0.1@1 BW0.0@2 F0.2@4&BW0.1@4 BW0.2@6")) == [("overlap", "BW0.0 F0.2")]


# The rules a second time, pair by pair.


def is_right(timeline: Timeline) -> bool:
    one, orders = timeline.problem, timeline.schedule
    return (
        is_complete(one, orders)
        and all(len(slot) == 1 or (slot[0].kind is F and slot[1].kind in (B, BW)) for o in orders.orders for slot in o)
        and has_its_starts(timeline)
        and is_in_turn(timeline)
        and waits_long_enough(timeline)
        and fits(timeline)
        and times_by_hand(timeline.problem, timeline.schedule) is not None  # passes of no length in a circle
    )


def is_complete(one: Problem, orders: Schedule) -> bool:
    """Every stage runs its micro-batches, in one of the ways there are, on its device, once."""
    held = Counter((device, p) for device in range(len(orders.orders)) for p in orders.passes_on(device))
    expected: Counter[tuple[int, Pass]] = Counter()
    for j in range(one.microbatches):
        for stage in one.chain_of(j):
            device = one.placement.stage_device[stage]
            fused = held[device, Pass(BW, stage, j)] > 0 or not one.splittable
            expected.update((device, Pass(kind, stage, j)) for kind in ((F, BW) if fused else (F, B, W)))
    return held == expected


def has_its_starts(timeline: Timeline) -> bool:
    every = {task for order in timeline.schedule.orders for job in jobs(timeline.problem, order) for task in job.tasks}
    return every == set(timeline.starts) and min(timeline.starts.values()) >= 0


def is_in_turn(timeline: Timeline) -> bool:
    for order in timeline.schedule.orders:
        queued = jobs(timeline.problem, order)
        if any(len({timeline.starts[task] for task in job.tasks}) > 1 for job in queued):
            return False
        for one, other in combinations(queued, 2):
            end = timeline.starts[one.tasks[0]] + one.ticks
            if one.stream == other.stream and timeline.starts[other.tasks[0]] < end:
                return False
    return True


def waits_long_enough(timeline: Timeline) -> bool:
    one, waits_of = timeline.problem, task_waits(timeline.problem, timeline.schedule)
    every = [job for order in timeline.schedule.orders for job in jobs(one, order)]
    task_end = {task: timeline.starts[task] + job.ticks for job in every for task in job.tasks}
    return all(
        start >= task_end[before] + lag for task, start in timeline.starts.items() for before, lag in waits_of(task)
    )


def fits(timeline: Timeline) -> bool:
    """The passes of a device run in its order, so what it holds needs no times at all."""
    return all(
        capacity is None or most_held(timeline.problem, timeline.schedule, device) <= capacity
        for device, capacity in enumerate(timeline.problem.room)
    )


def most_held(one: Problem, orders: Schedule, device: int) -> int:
    held, most = 0, 0
    for slot in orders.orders[device]:
        for kind, stage, _ in slot:
            activation, freed = one.stages[stage].activation, one.stages[stage].freed
            before = held
            held += {F: activation, B: -freed, W: freed - activation, BW: -activation}[kind]
            most = max(most, before, held)
    return most


def random_timeline(rng: Random) -> Timeline:
    """A right timeline that idles here and there, sometimes with no memory to spare."""
    one = random_problem(rng)
    orders = random_order(one, rng, pairs=0.5)
    if one.network.one_task_each and rng.random() < 0.7:
        stages = range(one.placement.stages)
        activation = [rng.randint(0, 3) for _ in stages]
        freed = [rng.randint(-2, activation[s]) for s in stages]
        one = one.with_stages(activation=activation, freed=freed)
        capacity = tuple(most_held(one, orders, device) for device in range(one.devices))
        one = one.with_room(capacity)
    starts = times_by_hand(one, orders, delay=lambda: rng.choice((0, 0, 0, 1, 3)))
    assert starts is not None
    return Timeline(one, orders, starts)


def a_slot(timeline: Timeline, rng: Random) -> tuple[list[list[Slot]], list[Slot], int]:
    orders = [list(order) for order in timeline.schedule.orders]
    order = rng.choice([order for order in orders if order])
    return orders, order, rng.randrange(len(order))


def with_orders(timeline: Timeline, orders: list[list[Slot]]) -> Timeline:
    return replace(timeline, schedule=Schedule(tuple(map(tuple, orders))))


def earlier(timeline: Timeline, rng: Random) -> Timeline:
    """One start, of a task or of the passes of a block, one tick earlier."""
    task = rng.choice(sorted(timeline.starts))
    moved = {task}
    if rng.random() < 0.8:
        every = [job for order in timeline.schedule.orders for job in jobs(timeline.problem, order)]
        moved |= {other for job in every if task in job.tasks for other in job.tasks}
    starts = {other: start - (other in moved) for other, start in timeline.starts.items()}
    return replace(timeline, starts=starts)


def swapped(timeline: Timeline, rng: Random) -> Timeline:
    """Two slots of a device change places; sometimes their starts do too."""
    orders, order, one = a_slot(timeline, rng)
    other = rng.randrange(len(order))
    a, b = Task(order[one][0]), Task(order[other][0])
    order[one], order[other] = order[other], order[one]
    starts = dict(timeline.starts)
    if rng.random() < 0.5:
        starts[a], starts[b] = starts[b], starts[a]
    return replace(with_orders(timeline, orders), starts=starts)


def dropped(timeline: Timeline, rng: Random) -> Timeline:
    orders, order, at = a_slot(timeline, rng)
    gone = order.pop(at)
    starts = {task: start for task, start in timeline.starts.items() if task.of not in gone}
    return replace(with_orders(timeline, orders), starts=starts)


def doubled(timeline: Timeline, rng: Random) -> Timeline:
    orders, order, at = a_slot(timeline, rng)
    rng.choice(orders).append(order[at])
    return with_orders(timeline, orders)


def moved(timeline: Timeline, rng: Random) -> Timeline:
    """A slot goes to the end of some device."""
    orders, order, at = a_slot(timeline, rng)
    rng.choice(orders).append(order.pop(at))
    return with_orders(timeline, orders)


def poorer(timeline: Timeline, rng: Random) -> Timeline:
    """One unit of memory less, or none less, on each device."""
    room = [None if c is None else max(0, c - rng.randint(0, 1)) for c in timeline.problem.room]
    return replace(timeline, problem=timeline.problem.with_room(room))


SEEDS = st.integers(0, 2**40).map(Random)


@settings(deadline=None, max_examples=150, database=None)
@given(SEEDS)
def test_right_timelines_are_accepted(rng: Random) -> None:
    timeline = random_timeline(rng)
    assert is_right(timeline)
    assert validate(timeline) == []


@pytest.mark.parametrize("spoil", [earlier, swapped, dropped, doubled, moved, poorer], ids=lambda f: f.__name__)
def test_spoilt_timelines_are_rejected_exactly_when_they_are_wrong(spoil: object) -> None:
    seen: Counter[bool] = Counter()

    @settings(deadline=None, max_examples=120, database=None)
    @given(SEEDS)
    def spoils(rng: Random) -> None:
        timeline = spoil(random_timeline(rng), rng)  # type: ignore[operator]
        right = is_right(timeline)
        assert (validate(timeline) == []) is right
        seen[right] += 1

    spoils()
    assert seen[False] > 20


def without_length(stage: Stage) -> Stage:
    return replace(
        stage,
        forward=0,
        backward=0,
        weight=None if stage.weight is None else 0,
        fused=0,
        transfer=0,
        overlapped=None if stage.overlapped is None else 0,
        tasks=tuple((kind, tuple(task._replace(ticks=0) for task in tasks)) for kind, tasks in stage.tasks),
    )


@pytest.mark.parametrize("seed", range(75))
def test_an_order_of_passes_of_no_length_is_valid_where_it_runs(seed: int) -> None:
    """All times are 0, so that only circles are left to find: where the simulator finds one too."""
    rng = Random(seed)
    one = random_problem(rng, parts=seed % 2 == 0)
    one = replace(one, stages=tuple(map(without_length, one.stages)), links=())
    order = shuffled(one, rng, 0.2) if seed % 3 else random_order(one, rng, 0.2)
    starts = {
        Task(p, part): 0
        for slot in (slot for slots in order.orders for slot in slots)
        for p in slot
        for part in range(
            1
            if len(slot) == 2 and one.overlapped_ticks(*slot) is not None
            else len(one.stages[p.stage].tasks_of(p.kind))
        )
    }
    runs = times_by_hand(one, order) is not None
    assert ({violation.rule for violation in validate(Timeline(one, order, starts))} - {"memory"} == set()) == runs
