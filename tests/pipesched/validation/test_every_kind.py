"""Tiny problems of every kind, in any order: simulator and validator against the definitions, right and spoilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from random import Random
from typing import Any

import pytest

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RESHARD, UNSHARD, B, F, PassKind, Slot, Task, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.stream_orders import stream_orders
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from pipesched.validation.violation import Violation
from tests.support.collective_problems import tiny_collectives
from tests.support.daily import daily
from tests.support.makers import random_order, random_problem
from tests.support.piece_problems import tiny_saving_pieces
from tests.support.task_brute_force import (
    Game,
    always_fits,
    arcs_of,
    drawn,
    game_of,
    gather_counts,
    savings,
    tiny_gathers,
    tiny_tasks,
    with_lookups,
)
from tests.support.tasks_at_once import tiny_at_once
from tests.support.tiny_lent import tiny_lent_of_files
from tests.support.tiny_memory import tiny_memory, tiny_unequal_memory
from tests.support.tiny_problem import tiny_problem


def tiny_lookups(rng: Random) -> Problem:
    return with_lookups(rng, tiny_tasks(rng))


Maker = Callable[[Random], Problem]
PLAIN: tuple[Maker, ...] = (tiny_problem, random_problem)
MAKERS: tuple[Maker, ...] = (
    *PLAIN,
    tiny_tasks,
    tiny_lookups,
    tiny_at_once,
    tiny_memory,
    tiny_unequal_memory,
    tiny_lent_of_files,
    tiny_gathers,
    tiny_collectives,
    tiny_saving_pieces,
)


def ordered(make: Maker, problem: Problem, rng: Random) -> Schedule:
    """Of plain passes some are in pairs, and their tasks in turn or in any order."""
    if make not in PLAIN:
        return drawn(problem, rng)
    passes = random_order(problem, rng, pairs=0.5)
    return passes if rng.random() < 0.5 else drawn(problem, rng, passes)


def chosen_by(problem: Problem, schedule: Schedule) -> Game | None:
    """What a schedule has chosen; None where it is none of the choices that there are, or passes lack or lie wrong."""
    every = [*schedule.passes()]
    pairs = [(s, j) for s in range(problem.placement.stages) for j in problem.microbatches_of[s]]
    saved = [p for p in every if p.kind in (OFFLOAD, *RECOMPUTATIONS)]
    fused = {(p.stage, p.microbatch) for p in every if p.kind is BW}
    ways = {p[1:]: p.kind for p in saved}
    if not fused <= {*pairs} or not (problem.splittable or fused == {*pairs}):
        return None
    gathers = Counter(p.stage for p in every if p.kind is UNSHARD)
    if len(ways) < len(saved) or ways not in [*savings(problem, pairs)] or gathers not in [*gather_counts(problem)]:
        return None
    game = game_of(problem, schedule)
    if any(
        len(slot) > 1 and (slot[0].kind is not F or slot[1].kind not in (B, BW)) for o in schedule.orders for slot in o
    ):
        return None
    here = Counter((device, p) for device in range(len(schedule.orders)) for p in schedule.passes_on(device))
    held = {task.of for task in game.ticks} | {*game.blocks.values()}
    return game if here == Counter((problem.device(p), p) for p in held) else None


def are_there(game: Game, order: Sequence[Slot]) -> bool:
    """Whether parameters are gathered where passes of their stages stand, each time once, and not too many."""
    there, number = set[int](), Counter[int]()
    for p in chain.from_iterable(order):
        if p.kind in (UNSHARD, RESHARD):
            if (p.stage in there) is (p.kind is UNSHARD) or p.microbatch != number[p.stage]:
                return False
            there ^= {p.stage}
            number[p.stage] += p.kind is RESHARD
        elif p.kind in (F, B, W, BW) and (stage := game.holder(p.stage)) in game.gathers and stage not in there:
            return False
        if len(there) > (game.problem.parameters.window or len(there)):
            return False
    return True


def is_right(timeline: Timeline) -> bool:
    """By the definitions alone."""
    problem, schedule, starts = timeline.problem, timeline.schedule, timeline.starts
    game = chosen_by(problem, schedule)
    if game is None or not all(are_there(game, order) for order in schedule.orders):
        return False
    together = {Task(back): Task(forward) for forward, back in game.blocks.items()}
    if {*starts} != game.ticks.keys() | together or min(starts.values(), default=0) < 0:
        return False
    if any(starts[task] != starts[other] for task, other in together.items()):
        return False
    orders = schedule.task_orders or stream_orders(problem, schedule)
    held = sorted((*where, task) for where, tasks in orders.items() for task in tasks)
    if held != sorted((*where, task) for task in game.stream for where in game.streams_of(task)):
        return False
    arcs = arcs_of(game, schedule)
    lags = dict.fromkeys(arcs, 0) | game.lags
    in_time = all(starts[one] + game.ticks[one] + lag <= starts[other] for (one, other), lag in lags.items())
    return in_time and game.starts(arcs) is not None and always_fits(problem, schedule)


def stricter(problem: Problem) -> bool:
    """A pass that ends with tasks on two streams counts as ended for those alone that wait for both of them."""
    return any(kind is W and len(tasks) > 1 for own in problem.stages for kind, tasks in own.tasks)


def agree(timeline: Timeline) -> list[Violation]:
    """What the validator finds, which is something just where the definitions say that the timeline is wrong."""
    found = validate(timeline)
    if found and stricter(timeline.problem) and {one.rule for one in found} == {"memory"}:
        return found
    # Passes of no length at one tick may stand in any order, also where that of micro-batches is fixed.
    if not (timeline.problem.walks.queues and len({*timeline.starts.values()}) < len(timeline.starts)):
        assert is_right(timeline) == (not found), [one.text for one in found]
    return found


@pytest.mark.parametrize("make", MAKERS)
def test_the_simulator_takes_the_times_of_the_definitions_and_memory_counts_in_every_state(make: Maker) -> None:
    fit = Counter[bool]()
    for seed in daily(range(100), 4):
        rng = Random(seed)
        problem = make(rng)
        schedule = ordered(make, problem, rng)
        timeline = simulate(problem, schedule)
        game = game_of(problem, schedule)
        assert dict(timeline.starts) == game.starts(arcs_of(game, schedule)), seed
        found = agree(timeline)
        assert {one.rule for one in found} <= {"memory", "parameters"}, seed  # of a window of gathered stages
        fit[not found] += 1
    assert fit[True] and (fit[False] or make is random_problem)


# Of the passes of each device.


def dropped(rows: list[list[Slot]], rng: Random) -> None:
    own = rng.choice([row for row in rows if row])
    own.pop(rng.randrange(len(own)))


def doubled(rows: list[list[Slot]], rng: Random) -> None:
    """On its own device or another."""
    rng.choice(rows).append(rng.choice([slot for row in rows for slot in row]))


def moved(rows: list[list[Slot]], rng: Random) -> None:
    """To the next device."""
    n = rng.choice([n for n, row in enumerate(rows) if row])
    rows[n - 1].append(rows[n].pop(rng.randrange(len(rows[n])) if len(rows) > 1 else -1))


def renamed(rows: list[list[Slot]], rng: Random) -> None:
    """Another pass in place of one."""
    own = rng.choice([row for row in rows if row])
    at = rng.randrange(len(own))
    own[at] = (own[at][0]._replace(kind=rng.choice([*PassKind]), microbatch=rng.randint(0, 2)),)


# Of the tasks of each stream, and the first of them of passes too.


def exchanged(rows: list[list[Any]], rng: Random) -> None:
    own = rng.choice([row for row in rows if row])
    one, other = (rng.randrange(len(own)) for _ in range(2))
    own[one], own[other] = own[other], own[one]


def lost(rows: list[list[Task]], rng: Random) -> None:
    """A task stands on no stream, or on another one."""
    own = rng.choice(rows)
    gone = own.pop(rng.randrange(len(own)))
    rng.choice(([], *rows)).append(gone)


def spoilt(timeline: Timeline, rng: Random) -> Timeline:
    """A start, the order of passes or of tasks, waits, or memory is another; some exchanged tasks run so."""
    kept, problem, part = timeline.schedule, timeline.problem, rng.randrange(8)
    if part < 3:
        chosen, less, whole = rng.choice([*timeline.starts]), rng.randint(1, 3), rng.random() < 0.5
        sooner = {task for task in timeline.starts if task == chosen or (whole and task.of == chosen.of)}
        return replace(timeline, starts={task: at - less * (task in sooner) for task, at in timeline.starts.items()})
    if part == 3:
        room = [None if own is None else own - rng.randint(0, 1) for own in problem.room]
        hosts = tuple(
            own._replace(capacity=max(0, own.capacity - rng.randint(0, 1))) for own in problem.resources.hosts
        )
        return replace(
            timeline, problem=replace(problem.with_room(room), resources=replace(problem.resources, hosts=hosts))
        )
    if part == 4:
        waits = [wait for wait in kept.waits if rng.random() < 0.5]
        return replace(timeline, schedule=Schedule(kept.orders, "", kept.task_orders, waits))
    if part == 5 or not kept.task_orders:
        rows = [list(row) for row in kept.orders]
        rng.choice((dropped, doubled, moved, renamed, *[exchanged] * (0 if kept.task_orders else 4)))(rows, rng)
        return replace(timeline, schedule=Schedule(tuple(map(tuple, rows)), "", kept.task_orders, kept.waits))
    tasks = [list(own) for own in kept.task_orders.values()]
    rng.choice((exchanged, exchanged, lost))(tasks, rng)
    streams = {where: tuple(own) for where, own in zip(kept.task_orders, tasks, strict=True)}
    schedule = Schedule(kept.orders, "", streams, kept.waits)
    with suppress(BadInput, Deadlock):
        return simulate(problem, schedule) if part == 7 else replace(timeline, schedule=schedule)
    return replace(timeline, schedule=schedule)


@pytest.mark.parametrize("make", MAKERS)
def test_a_spoilt_timeline_is_refused_exactly_where_it_is_wrong(make: Maker) -> None:
    """And a pass that has moved is named."""
    broken, right = Counter[str](), 0
    # Few of the pieces are right when spoilt.
    for seed in range(120) if make is tiny_saving_pieces else daily(range(120), 2):
        rng = Random(seed)
        problem = make(rng)
        timeline = simulate(problem, ordered(make, problem, rng))
        other = spoilt(timeline, rng)
        found = agree(other)
        right += not found
        broken.update({one.rule for one in found})
        shifted = {task.of for task, at in other.starts.items() if at != timeline.starts[task]}
        if shifted and found and other.schedule is timeline.schedule and not validate(timeline):
            assert shifted & {p for one in found for p in one.passes}, seed
    rules = {"complete", "times", "precedence", "overlap", "order", *["memory"] * (make is not random_problem)}
    assert broken.keys() >= rules and right > 9, broken
