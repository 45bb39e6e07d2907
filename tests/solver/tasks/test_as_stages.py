"""Passes of several tasks as plain passes of more stages: a relaxation, whose bounds are verified."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random
from threading import Event

from benchmarks.cases.drawn_tasks import drawn_tasks
from pipesched.checking.streams.tasks_as_stages import as_plain
from pipesched.files.problem_file import problem_from
from pipesched.results.evidence import TasksAsStages, relaxation_of
from pipesched.results.solution import Progress
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.construction.timing import best_times
from solver.engine.construction.sequential import Sequential
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.solve import solve
from solver.tasks.as_stages import stream_decomposition
from solver.tasks.dispatch import listed
from tests.support.counted import counted
from tests.support.rows_of_tasks import tiny_mirrored


def test_every_schedule_is_one_of_the_plain_problem_that_takes_no_longer() -> None:
    drawn = [problem for problem in drawn_tasks(3) if "exchange" in problem.name]
    tried = 0
    for one in [*drawn, *(tiny_mirrored(Random(seed)) for seed in range(60))]:
        relaxed = stream_decomposition(one)
        for schedule in () if relaxed is None else islice(listed(one), 3):
            timeline = best_times(one, schedule)
            assert not validate(timeline)
            seen = best_times(relaxed.plain, relaxed.order(timeline))
            assert not validate(seen)
            assert value_of(relaxed.plain, seen) <= value_of(one, timeline)
            tried += 1
    assert tried > 60


def test_the_check_makes_the_same_plain_problem() -> None:
    drawn = [problem for seed in range(4) for problem in drawn_tasks(seed) if "exchange" in problem.name]
    for one in [*drawn, *(tiny_mirrored(Random(seed)) for seed in range(200))]:
        relaxed = stream_decomposition(one)
        if relaxed is not None:
            again = as_plain(one, TasksAsStages(relaxed.rows))
            assert again == replace(relaxed.plain, name=again.name)


def test_more_is_proved_of_it_than_of_single_streams() -> None:
    one = replace(next(one for one in drawn_tasks(61) if one.name.startswith("61-6 ")), microbatches=5)
    engine = replace(ENGINE, construction=(Sequential(),), subsolvers=ENGINE.subsolvers[-1:], finish=Search.solution)
    alone, more = certificates(one, one.objective)[0].value_ticks, Event()

    def end_with_more(moment: Progress) -> None:
        if moment.lower_bound > 1.02 * alone * one.tick:
            more.set()

    found = solve(one, counted(0.1), end_with_more, more, engine=engine)
    assert isinstance(relaxation_of(found.certificate.evidence), TasksAsStages)
    assert found.lower_bound_ticks > 1.02 * alone


def test_no_device_is_left_without_a_stage() -> None:
    """Forwards on the second stream alone would leave the first streams, which are devices there, with nothing."""
    one = problem_from(
        {
            "devices": 3, "microbatches": 4, "streams": ["compute", "comm"], "objective": "span",
            "tasks": {
                "forward": [{"name": "a", "time": [3, 4, 1], "on": "comm"}],
                "backward": [{"name": "b", "time": [5, 2, 5], "on": "comm"}, {"name": "c", "time": [3, 4, 2]}],
                "weight": [{"name": "w", "time": [2, 1, 4], "on": "comm"}],
            },
            "times": {"transfer": 3}, "memory": {"activation": 1, "capacity": 3},
        }
    )  # fmt: skip
    assert stream_decomposition(one) is None
    found = solve(one, counted(4))
    assert found.timeline is not None and not validate(found.timeline)
    assert not any("DEFECT" in note for note in found.notes)
