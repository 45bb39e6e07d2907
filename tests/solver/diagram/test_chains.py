"""The bound by crossings of all chains: never above the optimum, more than one chain proves, checked from its evidence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from threading import Event

import pytest

from benchmarks.proofs.exhaustive.optimum import least_value
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingChains
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram.all_chains import bound
from solver.diagram.all_chains.bound import bounds_of_chains, guided, least_of_chains
from solver.diagram.all_chains.follow import what_follows
from solver.diagram.all_chains.guide import guide_of
from solver.diagram.all_chains.steps import ChainSteps, chain_steps
from solver.diagram.layers import Labels
from solver.limits import Limits
from solver.solve import solve
from tests.solver.diagram.test_blocks import EVEN, UNEVEN, WHOLE, of_tasks
from tests.support.certified import assert_proved_and_no_more, verdict
from tests.support.makers import problem

SPLIT = {"forward": 10, "backward": 10, "weight": 10}
KNOWN = 10_000.0


def posed(devices: int, microbatches: int, capacity: float, objective: str = "makespan", **keys: object) -> Problem:
    given: dict[str, object] = {
        "times": EVEN,
        "memory": {"capacity": capacity},
        "placement": "bidirectional",
        **keys,
    }
    return problem(devices, microbatches, objective=objective, **given)


def every(one: Problem, proved: float = 1, known: float = KNOWN, widths: tuple[int, ...] = (64,)) -> list[Certificate]:
    return list(bounds_of_chains(one, Event(), proved, known, widths))


def strongest(one: Problem, widths: tuple[int, ...] = (64,)) -> float:
    return float(one.in_units(Fraction(max(every(one, widths=widths), key=lambda found: found.value).value)))


def steps_on(one: Problem, devices: tuple[int, ...]) -> ChainSteps:
    steps = chain_steps(one, Paths(one), devices)
    assert steps is not None
    return steps


@pytest.mark.parametrize(
    ("one", "proved"),
    [
        (posed(2, 8, 2), 222),
        (posed(2, 6, 2), 168),
        (posed(3, 6, 2), 210),
        (posed(2, 4, 1, times=SPLIT), 170),
        (posed(2, 4, 1, "span", times=SPLIT), 160),
        (posed(3, 6, 2, "span"), 194),
    ],
)
def test_more_than_arguments_in_words_prove(one: Problem, proved: int) -> None:
    """The first is the optimum, with what two directions hold at once and blocks of two chains; of spans the first too."""
    assert strongest(one) == proved
    assert one.in_units(certificates(one, one.objective)[0].value) < proved


@pytest.mark.parametrize("times", [EVEN, WHOLE, SPLIT])
@pytest.mark.parametrize("capacity", [1, 2])
@pytest.mark.parametrize("objective", [Objective.MAKESPAN, Objective.SPAN])
def test_never_above_the_optimum(times: dict[str, object], capacity: int, objective: Objective) -> None:
    one = posed(2, 2, capacity, objective.value, times=times)
    best = least_value(one, objective, 100_000)
    assert best is not None
    assert max(found.value for found in every(one)) <= best


def test_both_devices_prove_more_than_one() -> None:
    """Each device by itself comes first, mirrored ones once; then the first devices of both chains."""
    found = every(posed(2, 4, 1, times=SPLIT))
    devices = [one.evidence.devices for one in found if isinstance(one.evidence, CrossingChains)]
    assert devices[0] == (0,) and devices[-1] == (0, 1) and (1,) not in devices
    assert all(one.value < other.value for one, other in pairwise(found))
    assert {one.device for one in found} == {0}


def test_memory_is_shared_by_the_chains() -> None:
    """With memory for all micro-batches of one chain, but not of both, more is proved than with memory for both."""
    little, much = (posed(2, 6, capacity, times=SPLIT) for capacity in (3, 6))
    known = 1_000_000
    ends = [least_of_chains(steps_on(one, (0, 1)), 64, known, 10**7, Event()).ticks for one in (little, much)]
    assert ends[0] is not None and ends[1] is not None
    scarce = least_of_chains(steps_on(posed(2, 6, 1, times=SPLIT), (0, 1)), 64, known, 10**7, Event()).ticks
    assert scarce is not None and scarce > ends[1]
    assert ends[0] >= ends[1]


def test_a_pair_is_a_block_of_any_two_chains() -> None:
    steps = steps_on(posed(2, 4, 2, times=UNEVEN | {k: v[:2] for k, v in UNEVEN.items() if isinstance(v, list)}), (0,))
    forwards = [n for n in range(4) if not steps.gradient[n]]
    assert [[int(steps.blocks[n, g]) for g in range(4) if steps.gradient[g]] for n in forwards] == [[23, 23], [24, 24]]


def test_orders_below_a_value_are_all_that_is_followed() -> None:
    steps = steps_on(posed(2, 8, 2), (0,))
    low, high = (least_of_chains(steps, 512, value, 10**7, Event()) for value in (50, 10_000))
    assert low.ticks == 50 and high.ticks is not None and high.ticks > 50
    assert low.work < high.work
    assert least_of_chains(steps, 512, high.ticks, 10**7, Event()).ticks == high.ticks


def test_merged_labels_prove_no_more() -> None:
    steps = steps_on(posed(3, 6, 2, times=UNEVEN | {"transfer": 1} | _first(3)), (1,))
    found = [least_of_chains(steps, width, 10_000, 10**7, Event()) for width in (1, 512)]
    assert found[0].ticks is not None and found[1].ticks is not None
    assert found[0].ticks <= found[1].ticks
    assert found[0].merged


def _first(count: int) -> dict[str, object]:
    return {name: times[:count] for name, times in UNEVEN.items() if isinstance(times, list)}


def test_what_follows_leaves_out_labels_and_proves_no_less() -> None:
    one, devices = posed(3, 6, 2), (0, 1, 2)
    steps, alone = steps_on(one, devices), [steps_on(one, (device,)) for device in devices]
    for value in (95, 105):
        plain = least_of_chains(steps, 64, value, 10**7, Event())
        guide = guided(steps, alone, 64, value, 10**7, Event())
        assert plain.ticks is not None and guide.ticks is not None and plain.ticks <= guide.ticks <= 105
    reached: list[Labels] = []
    least_of_chains(alone[0], 512, 104, 10**7, Event(), reached=reached)
    follows = what_follows(alone[0], reached, 64, 104, Event())
    assert follows is not None and follows.many[-1] == 1
    guides = (guide_of(steps, alone[0], 0, follows),)
    fewer = least_of_chains(steps, 64, 104, 10**7, Event(), guides)
    assert fewer.work < least_of_chains(steps, 64, 104, 10**7, Event()).work


def test_where_it_says_nothing() -> None:
    for one in (posed(2, 4, 2, "period"), posed(2, 4, 2, placement="linear"), of_tasks(posed(2, 4, 2))):
        assert not every(one)
    assert not every(posed(2, 4, 2), proved=KNOWN)
    assert least_of_chains(steps_on(posed(2, 8, 2), (0,)), 64, 10_000, 3, Event()).ticks is None
    halted = Event()
    halted.set()
    assert not list(bounds_of_chains(posed(2, 8, 2), halted, 1, KNOWN))


@pytest.mark.parametrize(
    "one",
    [
        posed(2, 8, 2),
        posed(2, 4, 1, times=SPLIT),
        posed(3, 6, 2, times=UNEVEN | {"forward": [9, 11, 10], "backward": [10, 9, 11], "weight": [11, 10, 9]}
              | {"overlapped": [23, 24, 22]}),
        posed(2, 4, 2, times=WHOLE),
        posed(2, 4, 2, memory={"capacity": 2, "freed_by_backward": 0.5}),
        posed(2, 4, 1, "span", times=SPLIT),
        posed(3, 6, 2, "span"),
    ],
)  # fmt: skip
def test_the_check_proves_it_and_no_more(one: Problem) -> None:
    assert_proved_and_no_more(one, every(one, widths=(1, 64)))


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingChains((), 8, 500),
        CrossingChains((0, 0), 8, 500),
        CrossingChains((2,), 8, 500),
        CrossingChains((-1,), 8, 500),
        CrossingChains((0,), 0, 500),
        CrossingChains((0,), 513, 500),
        CrossingChains((0,), 8, -1),
    ],
)
def test_evidence_of_no_orders_is_refused(evidence: CrossingChains) -> None:
    assert verdict(posed(2, 4, 2), Certificate(bound.KIND, 1, "", 0, evidence)) is Verdict.REFUSED


def test_a_period_and_several_tasks_are_not_proved_so() -> None:
    claim = Certificate(bound.KIND, 1, "", 0, CrossingChains((0,), 8, 500))
    assert verdict(posed(2, 4, 2), claim) is Verdict.VERIFIED
    assert verdict(posed(2, 4, 2, "period"), claim) is Verdict.NOT_VERIFIED
    assert verdict(of_tasks(posed(2, 4, 2)), claim) is Verdict.NOT_VERIFIED


def test_lower_values_prove_less() -> None:
    one = posed(2, 8, 2)
    for genuine in every(one):
        assert isinstance(genuine.evidence, CrossingChains)
        forged = replace(genuine.evidence, below=int(genuine.value) - 1)
        assert verdict(one, replace(genuine, evidence=forged)) is Verdict.REFUSED


def test_a_solve_proves_with_it_what_no_argument_in_words_does() -> None:
    found = solve(posed(2, 8, 2), Limits(deterministic=1.0, workers=1))
    assert found.certificate.kind == bound.KIND
    assert found.value_ticks == found.lower_bound_ticks
