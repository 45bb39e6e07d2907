"""Diagrams of all orders: never above the optimum, exact on small V placements, checked from its evidence."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from threading import Event

import numpy as np
import pytest

from pipesched.checking.diagram.repetition import Reached, repeated
from pipesched.checking.diagram.walk import walk_along
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingSteps
from pipesched.results.diagram_evidence import Diagram
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths
from solver.diagram import all_orders
from solver.diagram.all_orders import bounds_of_all_orders
from solver.diagram.certificate import KIND
from solver.diagram.follow import least_end
from solver.diagram.layers import Layer
from solver.diagram.repetition import skip
from solver.diagram.steps import Kept, Steps, kept_stages, stages_on, walked_chains
from solver.limits import Limits
from solver.solve import solve
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict
from tests.support.makers import problem

EVEN = {"forward": 10, "backward": 10, "weight": 10}
WHOLE = {"forward": 10, "backward": 20}
UNEVEN = {"forward": [9, 11, 10, 13], "backward": [10, 9, 11, 14], "weight": [11, 10, 9, 13], "transfer": 1}
WORK = 10**7


def v_shape(devices: int, microbatches: int, capacity: float, **keys: object) -> Problem:
    given: dict[str, object] = {"times": EVEN, "memory": {"capacity": capacity}, "objective": "span", **keys}
    return problem(devices, microbatches, **{"placement": "v-shape", **given})


def kept(one: Problem, devices: tuple[int, ...]) -> Steps:
    (chain,) = walked_chains(one)
    found = kept_stages(one, Paths(one), chain, stages_on(one, chain, devices))
    assert found is not None and not found.beside
    return found.steps


def strongest(one: Problem, widths: tuple[int, ...] = (64,)) -> Certificate:
    return max(bounds_of_all_orders(one, Event(), widths), key=lambda certificate: certificate.value)


def ticks(steps: Steps, width: int = 64, until: int = 96) -> int:
    found = least_end(steps, width, WORK, Event(), until=until).ticks
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "optimum"),
    [
        (v_shape(2, 8, 3), 510),
        (v_shape(2, 8, 3, times=WHOLE), 600),
        (v_shape(3, 8, 3), 680),
        (v_shape(3, 8, 3, times=WHOLE), 870),
        (v_shape(2, 6, 4, times=WHOLE, placement=[0, 1, 1, 0, 0, 1]), 690),
        (v_shape(2, 6, 3, times=WHOLE, placement="interleaved", chunks=2), 460),
    ],
)
def test_the_optimum_of_small_problems_that_no_argument_in_words_proves(one: Problem, optimum: int) -> None:
    """A solve finds schedules with these values."""
    assert one.in_units(Fraction(strongest(one).value)) == optimum
    assert one.in_units(certificates(one, one.objective)[0].value) < optimum


def test_a_solve_proves_with_it_what_no_argument_in_words_does() -> None:
    found = solve(v_shape(2, 8, 3), Limits(deterministic=2.0, workers=1))
    assert found.lower_bound_ticks == found.value_ticks
    assert found.certificate.kind == KIND


def drawn(seed: int) -> Steps:
    """Steps on the two devices of a V, with memory for few micro-batches."""
    random = Random(seed)
    times = {name: [random.randint(1, 9) for _ in range(4)] for name in ("forward", "backward", "weight")}
    memory = {"capacity": random.choice((3, 4)), "freed_by_backward": random.choice((0, 0.5, 1))}
    objective = random.choice(("span", "makespan"))
    return kept(v_shape(2, 24, 0, times=times | {"transfer": 2}, memory=memory, objective=objective), (0, 1))


@pytest.mark.parametrize("seed", range(6))
def test_skipped_rounds_are_no_longer_than_each_of_them(seed: int) -> None:
    """Even where few labels are kept, and one looks for a repetition early, nothing above the exact value is proved."""
    steps = drawn(seed)
    exact = ticks(steps)
    skipped = [ticks(steps, width, until) for width in (1, 64) for until in (3, 8)]
    assert max(skipped) <= exact
    assert skipped[-1] >= 0.8 * exact


# Activations differ from stage to stage, and what each device always holds.
HELD = {
    "capacity": [7, 5],
    "static": [1.5, 0.5],
    "activation": [2, 1, 1.5, 3],
    "freed_by_backward": [0.5, 1, 0, 1],
}


def test_stages_of_a_device_share_its_memory() -> None:
    one = v_shape(2, 7, 0, times=UNEVEN, memory=HELD)
    steps = kept(one, (0, 1))
    assert [float(n * one.resolution) for n in steps.room] == [5.5, 4.5]
    assert [float(n * one.resolution) for n in steps.whole] == [5, 2.5]
    assert [float(n * one.resolution) for n in steps.waiting] == [1.5, 0]
    assert [float(n * one.tick) for n in steps.longest] == [13, 10]
    assert steps.in_flight == 2


def test_the_least_delay_of_all_labels_is_repeated_by_bound_and_check() -> None:
    """One state before, with one label; two labels after, 2 and 20 later. One more state after: nothing is known."""
    before, after = np.array([[0, 10, 10]]), np.array([[0, 12, 12], [0, 30, 31]])
    keys, at = np.array([0]), [np.array([0, 1]), np.array([0, 2])]
    layers = [Layer(keys, at[0], before), Layer(keys, at[1], after)]
    reached = [Reached(keys, at[0], before), Reached(keys, at[1], after)]
    steps = walk_along(v_shape(1, 4, 4, placement="linear"), (0,), (), only_last=False).steps._replace(admitted=1)
    assert skip(layers, 1, 5) == repeated(reached, 4, 5, steps) == (5, 10)
    layers[1] = Layer(np.array([0, 1]), np.array([0, 1, 2]), after)
    reached[1] = Reached(np.array([0, 1]), np.array([0, 1, 2]), after)
    assert skip(layers, 1, 5) == repeated(reached, 4, 5, steps) == (0, 0)


def test_work_does_not_grow_with_the_microbatches() -> None:
    found = {m: least_end(kept(v_shape(2, m, 3), (0, 1)), 8, WORK, Event()) for m in (1_000, 100_000)}
    assert found[100_000].work < 1.1 * found[1_000].work
    assert found[1_000].ticks is not None and found[100_000].ticks is not None
    assert found[100_000].ticks == pytest.approx(100 * found[1_000].ticks, rel=0.01)


def test_states_without_an_end_are_left_out_and_change_nothing() -> None:
    steps = drawn(1)
    every = steps._replace(whole=np.zeros_like(steps.whole))
    some, all_ = (least_end(one, 64, WORK, Event()) for one in (steps, every))
    assert some.ticks == all_.ticks
    assert some.work < all_.work


def test_merged_labels_prove_less() -> None:
    times = {"forward": [9, 11, 10, 13, 8, 12], "backward": [10, 9, 14, 11, 12, 10], "weight": [5, 11, 8, 13, 9, 10]}
    steps = kept(v_shape(3, 8, 6, times=times), (0, 1, 2))
    proved = [ticks(steps, width) for width in (1, 8, 256)]
    assert proved == sorted(proved) and proved[0] < proved[-1]
    assert least_end(steps, 1, WORK, Event()).merged
    assert not least_end(kept(v_shape(2, 8, 3), (0,)), 64, WORK, Event()).merged


def test_nothing_is_said_of_tasks_or_after_a_stop_or_with_too_much_work() -> None:
    one = v_shape(2, 8, 3)
    sent = v_shape(2, 8, 3, times=EVEN | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    assert list(bounds_of_all_orders(sent, Event())) == []
    stop = Event()
    stop.set()
    assert list(bounds_of_all_orders(one, stop)) == []
    assert list(bounds_of_all_orders(one, Event(), work=10)) == []
    assert least_end(kept(one, (0, 1)), 64, 100, Event()).ticks is None


@pytest.mark.parametrize(
    ("mistake", "name"),
    [
        ("room for one less", "room after W"),
        ("no weight pass waits", "room after B"),
        ("a way that is longer", "room after W"),
    ],
)
def test_an_attack_finds_what_claims_too_much(mistake: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object) -> Kept | None:
        found = kept_stages(*given)  # type: ignore[arg-type]
        if found is None:
            return None
        steps = found.steps
        changed = {
            "room for one less": {"room": np.where(steps.room > 0, steps.room - 1, steps.room)},
            "no weight pass waits": {"longest": np.zeros_like(steps.longest)},
            "a way that is longer": {"lag": steps.lag + 1},
        }
        return found._replace(steps=steps._replace(**changed[mistake]))

    monkeypatch.setattr(all_orders, "kept_stages", wrong)
    assert attack_refutes(f"crossings of steps, {name}")


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    memory = {"capacity": 4, "freed_by_backward": 0.5}
    uneven = v_shape(2, 7, 0, times=UNEVEN, memory=memory, objective=objective.value)
    bidirectional = v_shape(4, 8, 3, placement="bidirectional", objective=objective.value)
    held = v_shape(2, 7, 0, times=UNEVEN, memory=HELD, objective=objective.value)
    for one in (uneven, replace(uneven, microbatches=120), bidirectional, held):
        assert_proved_and_no_more(one, bounds_of_all_orders(one, Event(), (1, 8)))


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingSteps(1, (1,), 8),
        CrossingSteps(0, (), 8),
        CrossingSteps(0, (1, 0), 8),
        CrossingSteps(0, (0, 0), 8),
        CrossingSteps(0, (0, 2), 8),
        CrossingSteps(0, (0, -1), 8),
        CrossingSteps(0, (0, 1), 0),
        CrossingSteps(0, (0, 1), 10**6),
        CrossingSteps(-1, (0, 1), 8),
    ],
)
def test_evidence_of_no_steps_is_refused(evidence: CrossingSteps) -> None:
    claim = Certificate(CrossingSteps.form, 1, "", 0, evidence)
    assert verdict(v_shape(2, 8, 3), claim) is Verdict.REFUSED
    assert verdict(v_shape(2, 8, 3), replace(claim, evidence=CrossingSteps(0, (0, 1), 1))) is Verdict.VERIFIED


def test_the_check_does_not_begin_what_takes_too_long() -> None:
    claim = Certificate(CrossingSteps.form, 1, "", 0, CrossingSteps(0, (0, 1, 2, 3), 8))
    assert verdict(v_shape(4, 40, 40), claim) is Verdict.NOT_VERIFIED


def test_the_sentence() -> None:
    assert strongest(v_shape(2, 8, 3)).text == (
        "The forwards and gradients of stages 0, 1, 2, 3 take turns on devices 0, 1: a device starts one of these forwards "
        "only while its memory has room for it besides others of these; a micro-batch is away for as long as other stages "
        "take. In whichever order they run, all 8 micro-batches take at least 510."
    )


def test_many_ticks_prove_the_same() -> None:
    """Times of labels are numbers of 64 bits then."""
    few, many = v_shape(2, 5, 3, times=WHOLE), v_shape(2, 5, 3, times={"forward": 10 * 2**24, "backward": 20 * 2**24})
    assert strongest(many).value % 2**24 == 0 or many.tick > 1
    assert many.in_units(strongest(many).value) == 2**24 * few.in_units(strongest(few).value)
    assert isinstance(strongest(few).evidence, Diagram)
