"""States whose keys have digits that several steps share, against keys with a digit for each step.

The bounds of diagrams may not depend on the keys; of each problem one certificate is checked with shared digits, and
with a tick more refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from threading import Event
from typing import Any
from unittest.mock import patch

from pipesched.checking.check import check_bound
from pipesched.checking.diagram import walk
from pipesched.checking.finding import Verdict
from pipesched.problem.attainable_spans import Value
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import modelled_steps
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.by_device import bounds_by_device
from solver.diagram.modelled_stages import in_flight, owner_of
from solver.diagram.threshold_search import ThresholdSearch
from tests.support.diagrams import v_shape

_MOST_LABELS = 10**4  # of a diagram by device, so that each problem takes a fraction of a second


def compare(number: int) -> tuple[Sequence[str], Sequence[str]]:
    """Return what the problem of this number has, and how it counts; `AssertionError` where a bound depends on keys."""
    random = Random(number)
    one, has = _drawn(random)
    plain, (chain,) = _bounds(one), one.placement.chains
    # The largest key that is allowed: one less than keys with a digit for each step need, or any less.
    largest = (in_flight(one, chain[0]) + 1) ** (2 * len(chain) - 1) - 1
    if random.random() < 0.5:
        largest = max(3, int(largest * random.random()))
    with patch.object(modelled_steps, "LARGEST_KEY", largest), patch.object(walk, "_MOST_STATES", largest):
        kept = modelled_steps.modelled_steps(one, Paths(one), chain, owner_of(one, chain, chain))
        if kept is None or not len(kept.steps.decoded):
            return ("all",), ("no shared digits",)
        shared = _bounds(one)
        for before, after in zip(plain, shared, strict=True):
            assert _best(before) == _best(after), f"{_best(before)} with a digit for each step, {_best(after)} shared"
        found = max(shared[0], key=lambda each: each.value_ticks, default=None)
        if found is not None:
            assert check_bound(one, found).verdict is Verdict.VERIFIED
            assert check_bound(one, replace(found, value_ticks=found.value_ticks + 1)).verdict is Verdict.REFUSED
    return ("all", *has), ("problems", *(() if found is None else ("checked",)))


def _bounds(one: Problem) -> tuple[list[Certificate], list[Certificate]]:
    """Return the certificates of diagrams of all orders, and of those by device, whose labels are merged above 64."""
    search = ThresholdSearch(one, Event(), lambda: (1, _MOST_LABELS), 64)
    return [*bounds_of_all_orders(one, Event())], [*bounds_by_device(search)]


def _best(found: Sequence[Certificate]) -> Value:
    return max((each.value_ticks for each in found), default=0)


def _drawn(random: Random) -> tuple[Problem, list[str]]:
    """Return a problem of 2 or 3 devices with scarce memory, and the names of what it has."""
    devices, microbatches = random.choice((2, 2, 3)), random.randint(2, 6)
    placement = random.choice(("v-shape", "linear", "interleaved"))
    stages = devices * (1 if placement == "linear" else 2)
    times: dict[str, Any] = {key: [random.randint(1, 12) for _ in range(stages)] for key in ("forward", "backward")}
    if random.random() < 0.5:
        times["weight"] = [random.randint(1, 9) for _ in range(stages)]
    if random.random() < 0.3:
        times["transfer"] = random.randint(1, 4)
    if random.random() < 0.2 and placement == "v-shape":
        times["overlapped"] = [random.randint(12, 40) for _ in range(stages)]
    memory: dict[str, Any] = {"capacity": random.randint(2, 5)}
    if "weight" in times and random.random() < 0.5:
        memory["freed_by_backward"] = 0.5
    objective = random.choice(("makespan", "span"))
    chunks = {"chunks": 2} if placement == "interleaved" else {}
    one = v_shape(
        devices, microbatches, 0, times=times, memory=memory, objective=objective, placement=placement, **chunks
    )
    more = [key for key in ("weight", "transfer", "overlapped") if key in times]
    return one, [placement, objective, *more, *(["freed by B"] if "freed_by_backward" in memory else [])]
