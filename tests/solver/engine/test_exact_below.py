"""CP-SAT asked for a schedule well below the incumbent: it finds the optimum, or refutes what was asked for."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from random import Random
from threading import Event

import pytest

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.problem import Objective
from pipesched.schedule.rescale import value_of
from solver.backends.exact_search import at_most
from solver.engine.engine import ENGINE
from solver.engine.phases.exact_below import ExactModelBelow
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Search
from solver.limits import Limits
from tests.solver.engine.test_exact_from_below import OPEN, SURE
from tests.support.brute_force import optimum, tiny_problem
from tests.support.makers import problem


@pytest.mark.parametrize("seed", range(12))
def test_what_is_asked_for_is_found_or_refuted(seed: int) -> None:
    one = replace(tiny_problem(Random(seed)), objective=Objective.SPAN)
    least = optimum(one, one.objective)
    if least is None:
        return
    best = least.value
    for asked in (ceil(best) - 1, ceil(best), ceil(best) + 3):
        found = at_most(ExactModel(jobs_of(one), asked, 0), asked, SURE, 60, Event(), lambda *_: None)
        if asked < best:
            assert found.timeline is None and asked < found.bound <= best
        else:
            assert found.timeline is not None and value_of(one, found.timeline) == best
            assert best - 1 < found.bound <= best


def searched(phase: ExactModelBelow, one=OPEN) -> tuple[Search, bool]:  # type: ignore[no-untyped-def]
    search = Search(one, Limits(workers=1, deterministic=50), lambda _: None, Event(), ENGINE)
    Sequential().run(search)
    applies = phase.applies(search)
    if applies:
        phase.run(search)
    return search, applies


def test_the_phase_proves_the_optimum() -> None:
    few = ExactModelBelow(least_literals=0, near=1.0, ask=0.5)
    search, applies = searched(few)
    assert applies and search.incumbent.state.value == search.incumbent.state.lower_bound
    refuted, _ = searched(replace(few, ask=0.0))
    assert 68 < refuted.incumbent.state.lower_bound < 69
    search.entered.add(few.name)
    assert not few.applies(search)


def test_the_phase_leaves_other_problems_alone() -> None:
    few = ExactModelBelow(least_literals=0, near=1.0)
    assert not searched(ExactModelBelow(near=1.0))[1]  # few literals
    assert not searched(replace(few, near=0.1))[1]
    assert not searched(replace(few, above=0.9))[1]
    assert not searched(replace(few, most_literals=1))[1]
    times = {"forward": 2, "backward": 3, "weight": 2}
    memory = {"activation": 1, "capacity": 4}
    assert not searched(few, problem(2, 6, times=times, memory=memory, placement="v-shape", objective="span"))[1]
    open_modes = problem(3, 7, times=times | {"fused": 4}, memory={"activation": 1, "capacity": 2}, objective="span")
    assert not searched(few, open_modes)[1]
