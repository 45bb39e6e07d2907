"""What is proved of plain passes alone holds with what was left out: no claim is above the optimum of everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from benchmarks.cases.drawn_tasks import drawn_tasks
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.relaxations import relaxed
from solver.bounds.analytic.catalogue import of_original
from solver.bounds.saving.certificates import certificates
from solver.engine.engine import ENGINE
from solver.solve import solve
from tests.support.collective_problems import tiny_collectives
from tests.support.counted import counted
from tests.support.module_problems import tiny_modules
from tests.support.piece_problems import least_of, tiny_pieces, tiny_saving_pieces
from tests.support.task_brute_force import TooManyOrdersError, tiny_gathers


@pytest.mark.parametrize("draw", (tiny_gathers, tiny_pieces, tiny_saving_pieces, tiny_modules, tiny_collectives))
def test_no_bound_of_the_plain_relaxation_is_above_the_optimum(draw: Callable[[Random], Problem]) -> None:
    compared = 0
    for seed in range(12):
        one = draw(Random(seed))
        poorer = relaxed(one)
        plain = poorer.problem.view is not None
        try:
            best = least_of(one) if plain else None
        except TooManyOrdersError:
            continue
        if best is None:
            continue
        found = solve(poorer.problem, counted(0.3))
        assert found.certificate is not None
        claim = of_original(poorer, found.certificate)
        assert check_bound(one, claim).verdict in (Verdict.VERIFIED, Verdict.TRUSTED)
        assert claim.value_ticks <= best, seed
        compared += 1
    assert compared > 3


def test_it_proves_more_than_arguments_about_one_device() -> None:
    one = next(problem for problem in drawn_tasks(2) if problem.name.startswith("2-18 "))
    found = solve(one, counted(0.5), engine=replace(ENGINE, subsolvers=ENGINE.subsolvers[-1:]))
    assert found.lower_bound_ticks > certificates(one, one.objective)[0].value_ticks
