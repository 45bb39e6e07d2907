"""A cell of a sweep over plans is at least as good as the published schedules on the partition of its plan."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from pipesched.files.plan_file import plan_problem_from
from pipesched.results.solution import Solution, Status
from pipesched.validation.validator import validate
from solver.analysis.published_comparison import all_tried
from solver.planning.plan import plan
from solver.sweeps import plan_start
from solver.sweeps.plan_start import with_published
from tests.support.counted import counted
from tests.support.plans_at_once import AT_ONCE


def test_a_better_published_schedule_on_the_same_partition_becomes_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = [{"name": "dense", "count": 4, "forward": 1, "backward": 2, "activation": 1}]
    layers.append({"name": "head", "forward": 1, "backward": 1, "activation": 1})
    problem = plan_problem_from(
        {"devices": 2, "microbatches": 4, "transfer": 1, "placement": "linear", "layers": layers}
    )
    found = plan(problem, counted(2))
    assert found.best is not None
    here = Solution(found.best.timeline.problem, Status.FEASIBLE, 0, None)
    tried = {one.name: one.timeline for one in all_tried(here, ["1f1b", "gpipe", "eager-1f1b"], counted(2)).candidates}
    plans = {
        name: replace(found.best, timeline=timeline, schedule=name)
        for name, timeline in tried.items()
        if timeline is not None
    }
    worst = max(plans.values(), key=lambda one: one.value)
    # No time was left for partitions of their own.
    monkeypatch.setattr(plan_start, "compared_schedules", lambda *_, **__: [])
    better, published = with_published(replace(found, best=worst), problem, AT_ONCE, Event())
    best = min(one.value for one in published if one.fits and one.value is not None)
    assert better.best is not None and better.best.value == best < worst.value
    assert better.best.partition == worst.partition and validate(better.best.timeline) == []
    assert (better.status is Status.OPTIMAL) is (best == found.lower_bound)
