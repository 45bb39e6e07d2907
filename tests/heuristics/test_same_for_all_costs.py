"""Schedules that say their order is the same for all costs have the same one on problems that differ in costs alone."""

from itertools import product
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from tests.support.daily import daily
from tests.support.makers import problem

NAMES = [heuristic.name for heuristic in HEURISTICS if heuristic.same_for_all_costs]
PLACES = [("linear", 1), ("interleaved", 2), ("interleaved", 3), ("v-shape", 2), ("wave", 4), ("bidirectional", 2)]


def costs(random, stages, split):
    """Times and memory of a problem file, a list for each."""

    def numbers(least, most):
        return [random.randint(least, most) for _ in range(stages)]

    times = {"forward": numbers(0, 9), "backward": numbers(0, 9), "transfer": random.randint(0, 3)}
    if split:
        times |= {"weight": numbers(0, 9), "fused": numbers(0, 20)}
    if random.random() < 0.5:
        times["overlapped"] = numbers(0, 20)
    return {"times": times, "memory": {"activation": numbers(1, 3), "capacity": random.randint(6, 40)}}


@pytest.mark.parametrize("name", daily([*NAMES], 2))
def test_order_does_not_depend_on_costs(name):
    random = Random(name)
    seen = 0
    for place, chunks in PLACES:
        for split, microbatches in product((False, True), (random.randint(2, 9), 8)):
            devices = random.choice((2, 4))
            keys = {"placement": place} | ({"chunks": chunks} if place in ("interleaved", "wave") else {})
            several = [
                problem(devices, microbatches, **keys, **costs(random, devices * chunks, split)) for _ in range(4)
            ]
            try:
                orders = {HEURISTICS[name].order(one).orders for one in several}
            except DoesNotApply:
                continue
            assert len(orders) == 1
            seen += 1
    assert seen
