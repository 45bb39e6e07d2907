"""Figures extended from fewer micro-batches are those of the whole schedule, simulated."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS, schedule_named
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from solver.cyclic.extended_candidate import extended_candidate
from solver.cyclic.replication import repeated, repeating, shortened
from solver.published import candidate, simulated_and_validated
from tests.support.daily import daily

_WRITTEN = [one.name for one in HEURISTICS if not one.searched and one.improves is None]
_FAST = {"1f1b", "1f1b-overlap", "zb-h1", "zb-h2"}


def _problem(seed: int, **keys: Any) -> Problem:
    """Linear or V, of times that are alike on some stages and differ on others, so that some steady states are late."""
    random = Random(seed)
    placement, devices = random.choice(["linear", "linear", "v-shape"]), random.randint(2, 4)
    stages = devices * (1 if placement == "linear" else 2)
    alike = random.random() < 0.5
    each = [random.randint(4, 12) for _ in range(1 if alike else stages)]
    times = {kind: [one + random.randint(0, 2) for one in each] for kind in ("forward", "backward", "weight")}
    document = {
        "devices": devices,
        "microbatches": random.randint(150, 260),
        "placement": placement,
        "times": {kind: row * (stages if alike else 1) for kind, row in times.items()}
        | {"transfer": random.randint(0, 2)},
        "memory": {"capacity": random.randint(1, 2 * stages), "activation": 1},
        "objective": random.choice(["makespan", "span"]),
    }
    return problem_from(document | keys, "test")


@pytest.mark.parametrize("seed", daily(range(24), 6))
def test_figures_are_those_of_the_whole_schedule(seed: int) -> None:
    """Of orders that do not depend on the number of micro-batches."""
    problem, found = _problem(seed), list[str]()
    for name in _WRITTEN:
        extended, whole = extended_candidate(problem, schedule_named(name)), candidate(problem, schedule_named(name))
        if extended is None or extended.extended_from is None:
            continue
        found.append(name)
        assert (extended.metrics, extended.fits) == (whole.metrics, whole.fits), name
        assert extended.timeline is None
        assert 2 * extended.extended_from <= problem.microbatches + 2 * problem.devices
    assert problem.placement.stages > problem.devices or len({*found} & _FAST) >= 3


@pytest.mark.parametrize("seed", range(6))
def test_figures_of_a_searched_order_are_those_of_its_repetition(seed: int) -> None:
    """The search may find another order for more micro-batches; what is shown is the one that is repeated."""
    problem = _problem(seed)
    heuristic = schedule_named("zb" if problem.placement.stages == problem.devices else "zbv")
    extended, short = extended_candidate(problem, heuristic), shortened(problem)
    assert short is not None
    known = candidate(short, heuristic).timeline
    if extended is None or extended.extended_from is None or known is None:
        return
    wholes = [
        simulated_and_validated(problem, repeated(known, *cuts, problem).schedule, heuristic.name)
        for cuts in repeating(known)
    ]
    assert extended.metrics in [one.metrics for one in wholes]


def test_a_schedule_without_steady_state_is_not_extended() -> None:
    """GPipe runs all forwards first."""
    assert (
        extended_candidate(
            _problem(0, placement="linear", devices=2, times={"forward": 2, "backward": 3, "weight": 1}),
            schedule_named("gpipe"),
        )
        is None
    )


def test_dependencies_on_other_micro_batches_are_not_extended() -> None:
    """Unequal micro-batches repeat nothing, and reductions wait for all of them."""
    plain = {
        "placement": "linear",
        "devices": 2,
        "microbatches": 200,
        "times": {"forward": 2, "backward": 3, "weight": 1},
    }
    one_f_one_b = schedule_named("1f1b")
    assert extended_candidate(_problem(0, **plain), one_f_one_b) is not None
    assert extended_candidate(_problem(0, **plain, microbatch_scale=[1, 2] * 100), one_f_one_b) is None
    reduced = _problem(0, **plain | {"objective": "iteration"}, parameters={"reduce": {"time": 3}})
    assert extended_candidate(reduced, one_f_one_b) is None
