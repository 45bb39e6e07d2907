"""Every branch of every bound against the optimum over all orders, where it proves most; and that optimum itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from fractions import Fraction
from math import ceil
from random import Random

import pytest

from benchmarks.proofs.bound_attack import attack, problems
from benchmarks.proofs.bound_branches import BRANCHES
from benchmarks.proofs.bound_problems import changed, draw
from benchmarks.proofs.branch import Branch
from pipesched.problem import placement
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.passes import W
from pipesched.problem.problem import Objective, Problem
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time import busy_interval
from tests.support.columns import Costs, Memory, build
from tests.support.daily import daily
from tests.support.drawers import tiny_unequal
from tests.support.exhaustive.optimum import Optimum, compared, least_value, optimum
from tests.support.module_problems import tiny_modules
from tests.support.piece_problems import tiny_pieces
from tests.support.task_brute_force import TooManyOrdersError, arcs_of, game_of
from tests.support.task_brute_force import optimum as every_order
from tests.support.tiny_problem import tiny_problem

# Claims held to the optimum for each branch, and for those that take a linear program or are rare.
COUNT, FEW = 3, 2
# Seeds that find their problems at once, of branches of which others draw for seconds.
SEEDS = {
    "cool-down, work there, one backward": 11,
    "cool-down, work there, several stages": 3,
    "decision diagram guided by each device, blocks, room after B": 4,
    "decision diagram of some stages, blocks, V": 6,
    "decision diagram with blocks, interleaved": 10,
    "decision diagram with blocks, two directions": 3,
    "decision diagram guided by fewer stages, room after B": 2,
}


@pytest.mark.parametrize("branch", daily(BRANCHES, 8), ids=lambda branch: branch.name)
def test_no_claim_is_above_the_optimum(branch: Branch) -> None:
    few = branch.name == "integral warm-up, one waits"
    found = attack(branch, FEW if few else COUNT, SEEDS.get(branch.name, 1))
    assert found.wrong == []
    assert found.problems == (FEW if few else COUNT)


def test_an_attack_finds_a_claim_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistake that the attack is for: what waits for W divided by the activation, as if it held all of that."""
    sound = busy_interval.area_left_at_last_forward

    def wrong(paths: Paths, stages: list[int], capacity: int) -> Fraction:
        less = copy(paths)
        less.view = replace(paths.view, ticks={of: 0 if of[0] is W else n for of, n in paths.view.ticks.items()})
        less.backward = [a - paths.view.ticks.get((W, s), 0) for s, a in enumerate(paths.backward)]
        return min(sound(paths, stages, capacity), sound(less, stages, capacity))

    monkeypatch.setattr(busy_interval, "area_left_at_last_forward", wrong)
    branch = next(one for one in BRANCHES if one.name.endswith("part freed"))
    found = attack(branch, 60, seed=0, most_wrong=1)
    assert len(found.wrong) == 1 and found.problems < 60
    problem, claim, least = found.wrong[0]
    assert least < claim.value
    assert least_value(problem, problem.objective, int(claim.value)) == least


@pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))
@pytest.mark.parametrize("make", (tiny_problem, tiny_pieces, tiny_modules, tiny_unequal))
def test_two_searches_over_all_orders_agree(make: Callable[[Random], Problem], objective: Objective) -> None:
    """The compiled one of whole passes, and that of any tasks, which tries every choice and order one by one."""
    seen = Counter[str]()
    for seed in range(20):
        problem = make(Random(seed))
        with suppress(TooManyOrdersError):
            slow = every_order(problem, objective, most_orders=1_000)
            found = optimum(problem, objective)
            assert (None if found is None else found.value) == slow, seed
            assert (found is None) == (why_infeasible(problem) is not None), seed
            assert compared(problem, objective, Fraction(1000)).beaten == (found is not None)
            if found is not None:
                assert_has(found, problem, objective)
            seen += Counter({"all": 1, "blocks": problem.overlaps, "split": problem.splittable, "none": found is None})
    assert seen["all"] > 3
    assert make is not tiny_problem or (seen["blocks"] > 2 and seen["split"] > 2 and seen["none"])


def assert_has(found: Optimum, problem: Problem, objective: Objective) -> None:
    """The optimum's schedule has its value by the definitions, and memory for it."""
    game = game_of(problem, found.schedule)
    arcs = arcs_of(game, found.schedule)
    assert game.value(arcs, objective) == found.value
    assert game.fits(arcs)


@pytest.mark.parametrize("branch", daily(BRANCHES, 20), ids=lambda branch: branch.name)
def test_a_comparison_says_what_the_optimum_does(branch: Branch) -> None:
    """On what the attack draws: blocks, links, long weight passes, and what B gives back of all signs."""
    random, compared_to = Random(branch.name), 0
    while compared_to < 6:
        problem = draw(random, branch.likely)
        for _ in range(3):
            problem = changed(random, problem, branch.likely)
        above = ceil(certificates(problem, problem.objective)[0].value_ticks * 11 / 10) + 1
        with suppress(TooManyOrdersError):
            least = least_value(problem, problem.objective, above)
            compared_to += 1
            assert compared(problem, problem.objective, Fraction(above)).beaten == (least is not None and least < above)
            if least is not None:
                assert compared(problem, problem.objective, least) == (False, True)
                assert compared(problem, problem.objective, least + Fraction(1, 6)).beaten
                assert compared(problem, problem.objective, least - Fraction(1, 6)) == (False, False)


def test_a_span_may_be_a_fraction_of_a_tick() -> None:
    memory = Memory((1,) * 4, (0,) * 4, (None, None))
    costs = Costs((4,) * 4, (1,) * 4, (4, 4, 3, 2), (5, 5, 4, 3), (1,) * 4)
    opposite = build(placement.bidirectional(2), 2, costs, memory, Objective.SPAN)
    assert least_value(opposite, Objective.SPAN, 100) == Fraction(35, 2)
    assert least_value(opposite, Objective.SPAN, 17) is None


def test_too_many_orders_are_not_tried() -> None:
    many = build(
        placement.linear(2), 11, Costs((1, 1), (1, 1), (1, 1), (2, 2), (0, 0)), Memory((1, 1), (0, 0), (None,) * 2)
    )
    with pytest.raises(TooManyOrdersError):
        least_value(many, Objective.MAKESPAN, 10**6)
    with pytest.raises(TooManyOrdersError):
        least_value(replace(many, placement=placement.linear(4)), Objective.MAKESPAN, 10**6)


def test_the_same_seed_gives_the_same_problems() -> None:
    one, other = (problems(BRANCHES[2], seed=5) for _ in range(2))
    assert [next(one) for _ in range(4)] == [next(other) for _ in range(4)]
