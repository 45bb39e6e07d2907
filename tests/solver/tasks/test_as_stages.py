"""Passes of several tasks as plain passes of more stages: a relaxation, whose bounds are verified."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from benchmarks.cases.drawn_tasks import drawn_tasks
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.checking.streams.tasks_as_stages import as_plain
from pipesched.results.evidence import OnDevice, TasksAsStages
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.bounds.saving.certificates import certificates
from solver.construction.timing import best_times
from solver.engine.engine import ENGINE
from solver.limits import Limits
from solver.solve import solve
from solver.tasks.as_stages import cut
from tests.support.rows_of_tasks import proved_of, tiny_mirrored
from tests.support.task_brute_force import TooManyOrdersError, optimum


def test_what_is_proved_of_the_plain_problem_is_never_above_the_optimum() -> None:
    random, tried, attained = Random(7), 0, 0
    while tried < 30:
        one = tiny_mirrored(random)
        try:
            relaxed, best = cut(one), optimum(one, one.objective, 5, 500)
        except TooManyOrdersError:
            continue
        if relaxed is None or best is None:
            continue
        tried += 1
        for found in proved_of(relaxed.plain):
            claim = relaxed.claim(found)
            assert claim.value_ticks <= best
            assert check_bound(one, claim).verdict is Verdict.VERIFIED
            attained += claim.value_ticks == best
    assert attained > 10


def test_every_schedule_is_one_of_the_plain_problem_that_takes_no_longer() -> None:
    drawn = [problem for problem in drawn_tasks(3) if "exchange" in problem.name][:3]
    tried = 0
    for one in [*drawn, *(tiny_mirrored(Random(seed)) for seed in range(40))]:
        relaxed = cut(one)
        found = solve(one, Limits(workers=1, deterministic=0.02))
        if relaxed is None or found.timeline is None or found.value_ticks is None:
            continue
        seen = best_times(relaxed.plain, relaxed.order(found.timeline))
        assert not validate(seen)
        assert value_of(relaxed.plain, seen) <= value_of(one, found.timeline)
        tried += 1
    assert tried > 20


def test_the_check_makes_the_same_plain_problem() -> None:
    drawn = [problem for seed in range(4) for problem in drawn_tasks(seed) if "exchange" in problem.name]
    for one in [*drawn, *(tiny_mirrored(Random(seed)) for seed in range(200))]:
        relaxed = cut(one)
        if relaxed is not None:
            again = as_plain(one, TasksAsStages(relaxed.rows, "load", OnDevice(0)))
            assert again == replace(relaxed.plain, name=again.name)


def test_more_is_proved_of_it_than_of_single_streams() -> None:
    one = next(problem for problem in drawn_tasks(61) if problem.name.startswith("61-6 "))
    found = solve(one, Limits(workers=1, deterministic=1.0), engine=replace(ENGINE, parts=ENGINE.parts[-2:]))
    assert isinstance(found.certificate.evidence, TasksAsStages)
    assert found.lower_bound_ticks > 1.1 * certificates(one, one.objective)[0].value_ticks
