"""Search over modes: edits keep what the kernel knows in step with the schedule, memory holds, and optima are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from numba import njit

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer, AnnealingParameters
from solver.local_search.mode_edits import begin, carry, undo
from solver.local_search.mode_moves import change_mode
from solver.local_search.modes import ABSENT, FUSED
from solver.local_search.units.operation_units import Operations, dominated_split, modes_matter
from solver.local_search.units.order_units import Units
from tests.solver.local_search.test_local_search import openings
from tests.support import makers
from tests.support.brute_force import optimum, tiny_problem

HEAT = AnnealingParameters(hot=1.0, cold=0.05, evenness=0.1, filling=0.2, reach=6, changing=0.4)


def tiny(seeds: range) -> Iterator[tuple[int, Problem]]:
    """Tiny problems where modes matter, the makespan to be minimised."""
    for seed in seeds:
        problem = replace(tiny_problem(Random(seed)), objective=Objective.MAKESPAN)
        if modes_matter(problem) and optimum(problem, Objective.MAKESPAN) is not None:
            yield seed, problem


def middle(seed: int) -> Problem:
    """Four devices; blocks, cheaper fused backwards or both, some that free less than nothing; tight memory."""
    random = Random(seed)
    where = random.choice(("linear", "bidirectional", "v-shape"))
    stages = 4 if where == "linear" else 8
    times: dict[str, object] = {"forward": 10, "backward": 10, "weight": 9, "transfer": random.choice((0, 2))}
    times["fused"] = [random.randint(14, 19) for _ in range(stages)]
    if where != "linear" or random.random() < 0.3:
        times["overlapped"] = [random.randint(18, 27) for _ in range(stages)]
    capacity = random.choice((5, 6, 8)) * (1 if where == "linear" else 2)
    memory = {"activation": 2, "freed_by_backward": random.choice((0, 1, -1)), "capacity": capacity + 1}
    objective = random.choice(("makespan", "span"))
    return makers.problem(4, 8, placement=where, times=times, memory=memory, objective=objective)


@njit(cache=True)
def seeded(number):  # type: ignore[no-untyped-def]
    """Begin the random numbers of compiled moves."""
    np.random.seed(number)


def starts(problem: Problem) -> list[Schedule]:
    return [*list(list_schedules(problem))[:2], sequential(problem)]


class Edited:
    """Operations under edits: the arrays of a search, without the search."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.units = Operations(problem, schedule)
        self.shop, modes, self.rows = Annealer(self.units).arrays(self.units.orders)
        assert modes is not None
        self.modes = modes
        self.rows.rank[self.rows.place < 0] = ABSENT
        begin(self.modes)

    def schedule(self) -> Schedule:
        orders = [row[:n].tolist() for row, n in zip(self.rows.order, self.rows.count, strict=True)]
        return self.units.schedule(orders, self.modes.of[:, FUSED].tolist(), self.modes.mate.tolist())

    def state(self) -> list[list[int]]:
        """Everything that an edit may change; of the orders what is in use, of absent costs nothing."""
        present = self.rows.place >= 0
        used = [row[:n] for row, n in zip(self.rows.order, self.rows.count, strict=True)]
        shop = self.shop
        costs = [np.where(present, column, 0) for column in (shop.ticks, shop.takes, shop.gives)]
        columns = (
            *used,
            self.rows.place,
            self.modes.mate,
            self.modes.of[:, FUSED],
            shop.waits_for,
            shop.feeds_to,
            *costs,
        )
        return [column.tolist() for column in columns]


def test_edits_are_those_of_the_schedule_they_lead_to_and_can_be_taken_back() -> None:
    """After every move the arrays are those of a search begun with the schedule as it has become."""
    undone = 0
    for seed in range(6):
        problem, random = middle(seed), Random(seed)
        one = Edited(problem, starts(problem)[seed % 2])
        path = np.arange(len(one.units.needs))
        seeded(seed)
        for _ in range(60):
            before = one.state()
            if random.random() < 0.6:
                change_mode(one.shop, one.modes, one.rows, path, random.choice((0, len(path))), 5)
            else:
                d = random.randrange(problem.devices)
                source, target = random.choices(range(int(one.rows.count[d])), k=2)
                carry(one.shop, one.modes, one.rows, d, source, target)
            fresh = Edited(problem, one.schedule())
            assert one.state() == fresh.state()
            if random.random() < 0.5 or makers.times_by_hand(problem, one.schedule()) is None:
                undo(one.shop, one.modes, one.rows)
                assert one.state() == before
                undone += 1
            begin(one.modes)
    assert undone > 150


def test_operations_of_a_line_keep_their_order_in_blocks_too() -> None:
    for seed in range(6):
        problem, random = middle(seed), Random(seed)
        one = Edited(problem, starts(problem)[0])
        path = np.arange(len(one.units.needs))
        seeded(seed)
        for _ in range(60):
            change_mode(one.shop, one.modes, one.rows, path, len(path), 5)
            begin(one.modes)
            d = random.randrange(problem.devices)
            source, target = random.choices(range(int(one.rows.count[d])), k=2)
            carry(one.shop, one.modes, one.rows, d, source, target)
            begin(one.modes)
        lines: dict[tuple[bool, int], list[int]] = {}
        for p in one.schedule().passes():
            if p.kind is not W:
                lines.setdefault((p.kind is F, p.stage), []).append(p.microbatch)
        assert all(line == sorted(line) for line in lines.values())


@pytest.mark.parametrize("seed", range(4))
def test_schedules_found_are_valid_and_take_what_the_search_says(seed: int) -> None:
    problem = middle(seed)
    for schedule in starts(problem)[:: 1 + seed % 2]:
        timeline = best_times(problem, schedule)
        units, opening = Operations(problem, timeline.schedule), openings(timeline)
        runs = [Annealer(units).run(units.orders, opening, HEAT, 2500, seed) for _ in range(2)]
        assert runs[0] == runs[1]
        assert runs[0] is not None
        after = simulate(problem, runs[0].schedule, opening)
        assert not validate(after)
        ends = [max(map(after.end, after.schedule.passes_on(d))) for d in range(problem.devices)]
        assert runs[0].value == max(end - begun for end, begun in zip(ends, opening, strict=True))
        assert measure(best_times(problem, runs[0].schedule)).value(problem.objective) <= runs[0].value
        assert runs[0].value <= measure(timeline).value(problem.objective)


def test_from_one_micro_batch_after_the_other_all_fused_annealing_finds_the_best_modes_of_tiny_problems() -> None:
    found, tried = 0, 0
    for _, problem in tiny(range(300)):
        best = optimum(problem, Objective.MAKESPAN)
        assert best is not None
        units = Operations(problem, sequential(problem))
        run = Annealer(units).run(units.orders, [0] * problem.devices, HEAT, 3000, 1)
        assert run is not None
        assert not validate(best_times(problem, run.schedule))
        assert run.value >= best.value
        found, tried = found + (run.value == best.value), tried + 1
    assert tried > 120
    assert found >= 0.97 * tried


def test_only_a_fused_backward_that_can_gain_nothing_is_split() -> None:
    times = {"forward": 2, "backward": 2, "weight": 1, "fused": [3, 2]}
    problem = makers.problem(2, 1, times=times)
    schedule = makers.schedule("F0.0 BW0.0", "F1.0 BW1.0")
    assert dominated_split(problem, schedule) == makers.schedule("F0.0 B0.0 W0.0", "F1.0 BW1.0")
    assert modes_matter(problem)
    assert not modes_matter(makers.problem(2, 1))
    assert not modes_matter(makers.problem(2, 1, times=makers.FULL))


def test_operations_of_a_schedule_give_it_back() -> None:
    for seed in range(20):
        problem = makers.random_problem(Random(seed), parts=False)
        schedule = makers.random_order(problem, Random(seed), 0.5)
        units = Operations(problem, schedule)
        back = units.schedule(units.orders, units.fused, units.mate)
        split = dominated_split(problem, schedule)
        assert [list(back.passes_on(d)) for d in range(problem.devices)] == [
            list(split.passes_on(d)) for d in range(problem.devices)
        ]
        assert sorted(len(u) for o in back.orders for u in o) == sorted(len(u) for u in Units(problem, split).slots)
        assert {Pass(BW, *one) for one in back.fused} == {p for p in split.passes() if p.kind is BW}
        assert all(p.kind is not B or problem.splittable for p in back.passes())
