"""Search over modes: edits keep what the kernel knows in step with the schedule, memory holds, and optima are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.local_search.annealing import Annealer
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.units.operation_units import Operations, modes_matter
from tests.solver.local_search.test_local_search import openings
from tests.support import makers
from tests.support.exhaustive.optimum import optimum
from tests.support.tiny_problem import tiny_problem

HEAT = AnnealingRun(hot=1.0, cold=0.05, evenness=0.1, filling=0.2, reach=6, changing=0.4)


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


def starts(problem: Problem) -> list[Schedule]:
    return [*list(list_schedules(problem))[:2], sequential(problem)]


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
        assert measure(best_times(problem, runs[0].schedule)).value_ticks(problem.objective) <= runs[0].value
        assert runs[0].value <= measure(timeline).value_ticks(problem.objective)


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
