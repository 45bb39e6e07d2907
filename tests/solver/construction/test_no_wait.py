"""Schedules in which no micro-batch waits: they are valid, and their starts are the best that a plain search finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from threading import Event

import pytest

from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.no_wait import search
from solver.construction.no_wait.block import Block, block_of, serves, simplified
from solver.construction.no_wait.search import BestStarts, best_starts, schedule_of
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.sequential import Sequential
from solver.engine.search import Engine, Search
from solver.engine.subsolvers import no_wait_schedules
from solver.engine.subsolvers.no_wait_schedules import NoWaitSchedules
from solver.limits import Limits
from solver.solve import solve
from tests.support.counted import counted
from tests.support.in_turn import in_turn
from tests.support.makers import problem


def drawn(random: Random, devices: int, microbatches: int) -> Problem:
    """Unequal stages on one chain; some passes take no time, some backwards free no memory."""
    chunks = random.choice((1, 2))
    placement = random.choice(("interleaved", "v-shape")) if chunks == 2 else "linear"
    stages = devices * chunks

    def some(least: int, most: int) -> list[int]:
        return [random.randint(least, most) for _ in range(stages)]

    least_ticks = random.choice((0, 1))
    times: dict[str, object] = {
        "forward": some(least_ticks, 4), "backward": some(least_ticks, 5), "transfer": random.randint(0, 2),
    }  # fmt: skip
    if random.random() < 0.75:
        times["weight"] = some(0, 3)
    activation = some(1, 3)
    least = max(
        sum(activation[s] for s in range(stages) if _device(s, devices, placement) == d) for d in range(devices)
    )
    memory: dict[str, object] = {"activation": activation, "capacity": least + random.randint(0, 6)}
    if "weight" in times and random.random() < 0.5:
        memory["freed_by_backward"] = [random.randint(-1, one) for one in activation]
        memory["capacity"] = least + stages + random.randint(0, 6)
    more = {"chunks": chunks} if placement == "interleaved" else {}
    objective = random.choice(("makespan", "span"))
    return problem(devices, microbatches, placement=placement, times=times, memory=memory, objective=objective, **more)


def _device(stage: int, devices: int, placement: str) -> int:
    return 2 * devices - 1 - stage if placement == "v-shape" and stage >= devices else stage % devices


def plain_value(one: Problem, starts: tuple[int, ...], split: bool) -> int | None:
    """The makespan or span with these starts of micro-batches, None where devices or memory do not admit them.

    By another hand than the kernel: every device's passes at once, and a weight pass whenever the next gap has room.
    """
    view = one.view
    assert view is not None
    (chain,), last = one.placement.chains, 0
    for device, room in enumerate(one.room):
        fixed: list[tuple[int, int, object, int]] = []
        for start in starts:
            now = start
            for s in chain:
                now += view.arrivals[s]
                fixed.append((now, view.ticks[F, s], F, s))
                now += view.ticks[F, s]
            for s in reversed(chain):
                kind = B if split else BW
                now += view.returns[s]
                fixed.append((now, view.ticks[kind, s], kind, s))
                now += view.ticks[kind, s]
        here = [row for row in fixed if one.placement.stage_device[row[3]] == device]
        own = sorted(here, key=lambda row: row[0])  # of those at once the earlier micro-batch's first
        changes: list[tuple[int, int, int]] = []  # when, frees before it takes, how much
        weights: list[tuple[int, int]] = []
        free = 0
        for begin, ticks, kind, s in [*own, (10**9, 0, None, -1)]:
            while weights:
                ready, of = weights[0]
                ends = max(free, ready) + view.ticks[W, of]
                if ends > begin:
                    break
                changes.append((ends, 0, -view.memory_until_weight[of]))
                free = ends
                weights.pop(0)
            if kind is None:
                break
            if begin < free:
                return None
            free = begin + ticks
            if kind is F:
                changes.append((begin, 1, view.memory_in_flight[s]))
            elif split and view.ticks[W, s]:
                taken = max(0, -view.freed_by_backward(s))
                changes += [(begin, 1, taken), (free, 0, -max(0, view.freed_by_backward(s)))]
                weights.append((free, s))
            elif split:
                taken = max(0, -view.freed_by_backward(s))
                changes += [(begin, 1, taken), (free, 0, -view.memory_in_flight[s] - taken)]
            else:
                changes.append((free, 0, -view.memory_in_flight[s]))
        since = own[0][0] if one.objective.by_device else 0
        last, level = max(last, free - since), 0
        for _, _, change in sorted(changes):
            level += change
            if room is not None and level > room:
                return None
    return last


def starts_of(one: Problem, split: bool, width: int = 10) -> tuple[int, ...] | None:
    assert one.view is not None
    block = block_of(one.view, split, one.objective.by_device)
    found = best_starts(block, one.microbatches, width, Event())
    return None if found is None else found.starts


@in_turn("seed", range(40))
def test_schedules_are_valid_and_end_when_their_starts_say(seed: int) -> None:
    """With the real times, with equal ones and without transfers."""
    random = Random(seed)
    one = drawn(random, random.randint(1, 4), random.randint(1, 9))
    assert serves(one) and one.view is not None
    split = one.view.splits
    for number, view in enumerate(simplified(one.view, split)):
        block = block_of(view, split, one.objective.by_device)
        found = best_starts(block, one.microbatches, 10, Event())
        assert found is not None
        timeline = simulate(one, schedule_of(block, found.starts))
        assert not validate(timeline), number
        if number == 0:
            value = plain_value(one, found.starts, split)
            assert value is not None and measure(timeline).value_ticks(one.objective) <= value


def test_of_unequal_stages_and_transfers_a_schedule_without_them_is_near_the_bound() -> None:
    """With the real times hardly any start fits: the makespan was 1.7 times as long."""
    random = Random(1)
    times: dict[str, object] = {
        kind: [round(1000 * random.uniform(0.95, 1.05)) for _ in range(16)]
        for kind in ("forward", "backward", "weight")
    }
    memory = {"activation": 1, "capacity": 4}
    one = problem(8, 16, placement="v-shape", times=times | {"transfer": 20}, memory=memory)
    found = solve(one, counted(2), engine=ENGINE)
    assert found.value_ticks is not None and found.value_ticks < 1.03 * found.lower_bound_ticks


def test_memory_that_a_far_backward_frees_is_waited_for() -> None:
    """A start moved on by half of the shortest pass, at most so many times, and none was found."""
    forward = [1, *[1000] * 15]
    times = {"forward": forward, "backward": 1000, "weight": 1000}
    one = problem(8, 16, placement="v-shape", times=times, memory={"activation": 1, "capacity": 4})
    assert starts_of(one, True) is not None


def test_of_two_micro_batches_the_best_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start is tried, one tick after the other."""
    monkeypatch.setattr(search, "_PARAMS", replace(search._PARAMS, branches=500, tries=500, step_share=0.01))
    kinds = Counter[str]()
    for seed in (*range(60), 293, 308, 379, 429, 538, 1277):  # of the last six others were found
        one = drawn(Random(1000 + seed), 1 + seed % 3, 2)
        assert one.view is not None
        split, length = one.view.splits, block_of(one.view, one.view.splits).length
        values = {start: plain_value(one, (0, start), split) for start in range(1, 3 * length + 50)}
        found = starts_of(one, split)
        assert found is not None
        best = min(value for value in values.values() if value is not None)
        assert values[found[1]] == best, (seed, found, best)
        kinds["together" if found[1] < length else "apart"] += 1
        kinds[one.objective.name] += 1
    assert kinds["together"] > 20 and kinds["apart"] > 0 and kinds["span"] > 20


ENGINE = Engine(AnalyticBounds(), (Sequential(),), (NoWaitSchedules(),), Search.solution, raise_bounds=False)


def test_a_v_of_a_quarter_of_the_memory_is_solved_to_optimality() -> None:
    """The starts of an optimum are not equally far apart, as those of a building block are."""
    one = problem(
        8, 16, placement="v-shape", times={"forward": 1, "backward": 1, "weight": 1},
        memory={"activation": 1, "capacity": 4},
    )  # fmt: skip
    found = solve(one, Limits(seconds=600, workers=1, deterministic=5), engine=ENGINE)
    assert found.status is Status.OPTIMAL and found.timeline is not None and not validate(found.timeline)


def test_more_counted_work_searches_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice was one width, however much work it had."""
    one, widths = problem(8, 32, placement="v-shape", memory={"activation": 1, "capacity": 4}), dict[float, list[int]]()

    def recorded(work: float) -> Callable[..., BestStarts | None]:
        def searched(block: Block, microbatches: int, width: int, stop: Event) -> BestStarts | None:
            widths.setdefault(work, []).append(width)
            return best_starts(block, microbatches, width, stop)

        return searched

    for work in (0.1, 10):
        monkeypatch.setattr(no_wait_schedules, "best_starts", recorded(work))
        engine = replace(ENGINE, subsolvers=(NoWaitSchedules(most_width=100),))
        solve(one, counted(work), engine=engine)
    assert max(widths[0.1]) < max(widths[10])


def test_fused_backwards_are_tried_where_they_are_shorter() -> None:
    times = {"forward": 2, "backward": 2, "weight": 2, "fused": 3}
    one = problem(2, 4, times=times, memory={"activation": 1, "capacity": 2})
    found = solve(one, counted(1), engine=ENGINE)
    assert found.timeline is not None and not validate(found.timeline)
    assert any(p.kind is BW for order in found.timeline.schedule.orders for slot in order for p in slot)


def test_plain_pipelines_of_one_chain_with_a_limit_are_served() -> None:
    assert serves(problem(2, 3, memory={"capacity": 2}))
    assert not serves(problem(2, 3))
    assert not serves(problem(2, 4, placement="bidirectional", memory={"capacity": 4}))
    assert not serves(problem(2, 3, memory={"capacity": 2}, microbatch_scale=[1, 2, 1]))


def test_it_stops_when_asked() -> None:
    one, stop = problem(4, 8, memory={"capacity": 4}), Event()
    stop.set()
    assert one.view is not None and best_starts(block_of(one.view, False), 8, 10, stop) is None


def test_passes_of_no_time_that_begin_at_once_run_as_their_memory_was_counted() -> None:
    """The earlier micro-batch's first; a last pass at the start of another still frees its memory."""
    times = {"forward": [3, 0, 1], "backward": [0, 0, 2], "weight": [1, 0, 2]}
    memory = {"activation": [2, 3, 2], "capacity": 4, "freed_by_backward": [1, 2, 2]}
    assert solve(problem(3, 3, times=times, memory=memory), counted(1), engine=ENGINE).notes == ()
    one = problem(2, 4, times={"forward": [1, 3], "backward": [0, 1]}, memory={"activation": [2, 3], "capacity": 3})
    assert starts_of(one, False) is not None
