"""Problems of whole passes, and the schedules of tasks that come of theirs."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from formulations.jobs.jobs_of_problem import jobs_of
from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import interleaved, linear
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.published import Published
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.tasks.two_levels import TwoLevels
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.tasks.whole_passes import in_tasks, with_blocks, with_delays
from tests.support.expert_parallel import mean_layers
from tests.support.slices import run_slice

LIMITS = Limits(seconds=float("inf"), workers=1, deterministic=2.0)
PROBLEM = mean_layers(interleaved(2, 2), 4)


def test_communication_as_a_delay_leaves_what_computes() -> None:
    (stage, *_) = with_delays(PROBLEM).stages
    assert [stage.ticks(kind) for kind in (F, B, W, BW)] == [924, 1490, 747, 2237]
    assert stage.transfer == 60 + (1035 + 977) // 2


def test_a_block_takes_as_long_as_the_best_pair() -> None:
    problem = with_blocks(PROBLEM, LIMITS, Event())
    assert problem.network.one_task_each
    assert problem.block_lengths == {924 + 2237}  # all communication hidden


@pytest.mark.parametrize("blocks", (False, True))
def test_the_tasks_of_whole_passes_are_a_schedule_in_limited_memory(blocks: bool) -> None:
    problem = mean_layers(linear(4), 8)
    whole = with_blocks(problem, LIMITS, Event()) if blocks else with_delays(problem)
    order = HEURISTICS["1f1b-overlap"].order(whole)
    peaks = (8, 6, 4, 2)  # 2(p-1-i) + 2 activations
    limited: Problem = problem.with_room(peaks)
    schedule = in_tasks(jobs_of(limited), simulate(whole, order))
    assert schedule is not None
    assert validate(simulate(limited, schedule)) == []


def test_a_slice_of_each_offers_schedules_of_both_kinds_of_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pass-level schedules are found by published ones alone here."""
    small = Engine(AnalyticBounds(), (Published(compare_up_to_passes=0), Sequential()), (), Search.solution)
    search = Search(PROBLEM, LIMITS, lambda _: None, Event(), replace(small))
    names: list[str] = []

    def offered(schedule: Schedule) -> None:
        assert validate(simulate(PROBLEM, schedule)) == []
        names.append(schedule.name)

    monkeypatch.setattr(search, "start_from", offered)
    part = TwoLevels(small)
    assert part.serves(search)
    run_slice(part, search, slices=2)
    assert len(names) >= 2
