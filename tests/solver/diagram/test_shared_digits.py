"""Keys in which steps share digits: each state has its own, and bounds and checks are those of keys with a digit each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from random import Random
from threading import Event

import numpy as np
import pytest

from benchmarks.proofs import shared_digits as attack
from pipesched.checking.diagram import shared_digits as of_check
from pipesched.checking.diagram import walk
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import modelled_steps
from solver.diagram import shared_digits as of_solver
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.by_device import bounds_by_device
from solver.diagram.modelled_stages import in_flight, owner_of
from solver.diagram.moves import in_flight_of
from solver.diagram.shared_digits import shared_digits
from solver.diagram.threshold_search import ThresholdSearch
from solver.limits import Limits
from solver.solve import solve
from tests.support.certified import assert_proved_and_no_more
from tests.support.daily import daily
from tests.support.diagrams import BLOCKS, EVEN, FREED, UNEVEN, UNEVEN_BLOCKS, UNEVEN_MEMORY, WHOLE, v_shape

LARGEST = 2**62


@pytest.mark.parametrize(
    ("most", "steps", "largest"),
    [(4, 31, LARGEST), (3, 47, LARGEST), (5, 9, 10**6), (6, 25, LARGEST), (2, 8, 3000), (1, 7, 100), (4, 7, 10**4)],
)
def test_each_state_has_a_key_of_its_own_and_is_read_from_it(most: int, steps: int, largest: int) -> None:
    """By both programs alike: of states with few steps all are tried, else some are drawn."""
    shared, crowds = shared_digits(most, steps, largest), of_check.shared_digits(most, steps, largest)
    assert shared is not None and crowds is not None
    base, raises, decoded = shared
    assert np.array_equal(decoded, crowds) and (most + 1) ** steps > largest >= int(base[0]) ** len(base)
    weights = of_check.weights_in_digits(crowds, steps)
    assert np.array_equal(np.diff(weights, prepend=0, append=0), raises)
    random, places = Random(0), range(steps + 1)  # the last: not in flight
    states = (
        combinations_with_replacement(places, most)
        if steps < 10
        else (random.choices(places, k=most) for _ in range(2000))
    )
    seen = dict[int, tuple[int, ...]]()
    for state in states:
        at = np.bincount(state, minlength=steps + 1)[:steps]
        key = int(at @ weights)
        assert 0 <= key < largest and seen.setdefault(key, tuple(at)) == tuple(at)
        assert np.array_equal(of_check.crowds_of(np.array([key]), crowds, steps)[0], at)
        read = [crowds[key // int(base[0]) ** n % int(base[0])] for n in range(len(base))]
        assert np.array_equal(np.concatenate(read)[:steps], at)


def test_there_are_none_for_too_many_micro_batches_or_steps() -> None:
    for most, steps in ((8, 63), (100, 31), (4, 60)):
        assert shared_digits(most, steps, LARGEST) is None
        assert of_check.shared_digits(most, steps, LARGEST) is None


def _of_all_orders(one: Problem) -> list[Certificate]:
    return [*bounds_of_all_orders(one, Event())]


def _by_device(one: Problem) -> list[Certificate]:
    return [*bounds_by_device(ThresholdSearch(one, Event(), lambda: (10, 1500), 64))]


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Problem], None]]:
    """Makes keys with a digit for each step of the problem's chain one too large."""

    def share(one: Problem) -> None:
        (chain,) = one.placement.chains
        largest = (in_flight(one, chain[0]) + 1) ** (2 * len(chain) - 1) - 1
        monkeypatch.setattr(modelled_steps, "LARGEST_KEY", largest)
        monkeypatch.setattr(walk, "_MOST_STATES", largest)

    return share


CASES = [
    v_shape(2, 6, 3),
    v_shape(2, 6, 4, times=UNEVEN, objective="makespan"),
    v_shape(2, 5, 0, times=UNEVEN, **FREED),
    v_shape(2, 5, 0, times=UNEVEN, **UNEVEN_MEMORY),
    v_shape(2, 5, 3, times=EVEN | BLOCKS),
    v_shape(2, 4, 0, times=UNEVEN_BLOCKS, **FREED),
    v_shape(3, 5, 2, times=WHOLE, objective="makespan", placement="linear"),
    v_shape(2, 6, 3, times=WHOLE, placement="interleaved", chunks=2),
    v_shape(2, 120, 3),  # rounds repeat
]


@pytest.mark.parametrize("bounds", [_of_all_orders, _by_device])
@pytest.mark.parametrize("one", daily(CASES, 3))
def test_bounds_and_checks_do_not_depend_on_the_keys(
    one: Problem, bounds: Callable[[Problem], list[Certificate]], sharing: Callable[[Problem], None]
) -> None:
    if bounds is _by_device and one.microbatches > 100:
        one = replace(one, microbatches=8)
    plain, (chain,) = bounds(one), one.placement.chains
    sharing(one)
    kept = modelled_steps.modelled_steps(one, Paths(one), chain, owner_of(one, chain, chain))
    assert kept is not None and len(kept.steps.decoded)
    assert bounds(one) == plain
    most = max(plain, key=lambda each: (each.value_ticks, len(each.evidence.stages)))  # type: ignore[union-attr]
    assert_proved_and_no_more(one, [plain[-1], most])
    of_all = Diagram(chain, 64, device=owner_of(one, chain, chain))
    value = max(each.value_ticks for each in _of_all_orders(one))
    assert_proved_and_no_more(one, [replace(plain[0], value_ticks=value, evidence=of_all)])


def test_the_number_in_flight_is_read_from_a_key(sharing: Callable[[Problem], None]) -> None:
    one = v_shape(2, 6, 3)
    (chain,) = one.placement.chains
    found = []
    for _ in range(2):
        kept = modelled_steps.modelled_steps(one, Paths(one), chain, owner_of(one, chain, chain))
        assert kept is not None
        for ran in ([0] * 8, [1] + [0] * 7, [3, 2, 2, 1, 1, 1, 0, 0], [4, 3, 3, 3, 2, 2, 2, 2], [6] * 8):
            key = sum(int(raises) * count for raises, count in zip(kept.steps.raises, ran, strict=True))
            found.append(in_flight_of(key, kept.steps) == ran[0] - ran[-1])
        sharing(one)
    assert len(kept.steps.decoded) and found == [True] * 10


def test_all_orders_of_eight_devices_with_two_stages_each() -> None:
    """A digit for each of 32 steps would take 74 bits."""
    one = v_shape(8, 6, 4, times=WHOLE, objective="makespan")
    found = solve(one, Limits(seconds=600, deterministic=20, workers=1))
    assert found.lower_bound_ticks == found.value_ticks
    evidence = found.certificate.evidence if found.certificate else None
    assert isinstance(evidence, Diagram) and len(evidence.stages) == 16


def test_drawn_problems_have_the_same_bounds_with_shared_digits() -> None:
    """The attack (`python -m benchmarks.proofs.attack shared-digits`) on its first problems."""
    outcomes = [attack.compare(number)[1] for number in range(12)]
    assert sum("checked" in one for one in outcomes) > 6


@pytest.mark.parametrize(
    "weights",
    [lambda most, count: [*range(1, count + 1)], lambda most, count: [2**n for n in range(count)]],
    ids=["1, 2, 3", "powers of 2"],
)
def test_weights_of_which_sums_are_equal_are_noticed(
    weights: Callable[[int, int], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two states with one key may prove a bound that a schedule is below."""
    monkeypatch.setattr(of_solver, "_weights", weights)

    def is_wrong(number: int) -> bool:
        try:
            attack.compare(number)
        except (AssertionError, ValueError):
            return True
        return False

    assert any(map(is_wrong, range(24)))
