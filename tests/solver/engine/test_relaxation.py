"""What is proved of plain passes alone, of problems with more than these."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.cases.drawn_tasks import drawn_tasks
from solver.bounds.saving.certificates import certificates
from solver.engine.engine import ENGINE
from solver.solve import solve
from tests.support.counted import counted


def test_it_proves_more_than_arguments_about_one_device() -> None:
    one = next(problem for problem in drawn_tasks(2) if problem.name.startswith("2-18 "))
    found = solve(one, counted(0.5), engine=replace(ENGINE, subsolvers=ENGINE.subsolvers[-1:]))
    assert found.lower_bound_ticks > certificates(one, one.objective)[0].value_ticks
