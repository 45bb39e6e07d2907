"""List schedules whose devices choose passes by their ranks: within memory, and in the order that the ranks say."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from solver.construction import tuned_lists
from solver.construction.lists.layout import MOST, PATIENCE, RANKED, RULE_COLUMNS, Rules
from solver.construction.lists.tables import ANY, covers, list_run, schedule_of_run, shop_of
from solver.construction.rule_search import RuleMaker
from solver.construction.timing import best_times
from solver.construction.tuned_lists import TunedLists
from tests.support.columns import Costs, Memory, build
from tests.support.makers import random_problem


def test_whatever_the_ranks_schedules_are_whole_and_within_memory() -> None:
    random, numbers, ran = Random(3), np.random.default_rng(3), 0
    for _ in range(60):
        problem = random_problem(random, blocks=False, parts=False)
        if not covers(problem):
            continue
        shop = shop_of(problem, problem.splittable)
        maker = RuleMaker(problem, shop, problem.splittable)
        rules = maker.ranked(numbers)
        for _ in range(4):
            found = list_run(shop, rules)
            rules = maker.changed(rules, numbers)
            if found is None:
                assert len(problem.placement.chains) > 1 or problem.network.backward_takes_memory
                continue
            timeline = best_times(problem, schedule_of_run(problem, found, problem.splittable))
            assert validate(timeline) == []
            assert measure(timeline).value_ticks(problem.objective) <= found.value(problem.objective)
            ran += 1
    assert ran > 100


def order(problem: Problem, *columns: tuple[int, tuple[int, int]]) -> str:
    """What the device runs if these columns of the rules have these numbers for its stages; it never waits."""
    rules = np.zeros((2, RULE_COLUMNS), np.int64)
    rules[:, MOST], rules[:, PATIENCE] = ANY, 100
    for column, numbers in columns:
        rules[:, column] = numbers
    found = list_run(shop_of(problem, True), Rules(np.array((1, 1, 0, 1, -1), np.int64), rules))
    assert found is not None
    return " ".join(map(str, (p for slot in schedule_of_run(problem, found, True).orders[0] for p in slot)))


def test_ranks_help_where_devices_have_several_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen micro-batches on eight devices with two stages each and memory for less than both of eight."""
    costs = Costs((10,) * 16, (10,) * 16, (10,) * 16, (20,) * 16, (0,) * 16)
    problem = build(placement.interleaved(8, 2), 16, costs, Memory((1,) * 16, (0,) * 16, (15,) * 8), Objective.SPAN)
    with_ranks = TunedLists(problem, True, 1, 0)
    with_ranks.descend(lambda: False)
    monkeypatch.setattr(tuned_lists, "LISTS", replace(tuned_lists.LISTS, ranked_runs=0))
    without = TunedLists(problem, True, 1, 0)
    without.descend(lambda: False)
    assert with_ranks.rules is not None and with_ranks.rules.flags[RANKED]
    assert with_ranks.value is not None and without.value is not None
    assert with_ranks.value < without.value
