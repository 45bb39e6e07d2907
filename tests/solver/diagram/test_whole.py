"""Diagrams with whole weight passes: what trying everything gives, more than interruptible ones, and checked."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from threading import Event
from typing import Any

import numpy as np
import pytest

from pipesched.checking.diagram import replay
from pipesched.checking.finding import Verdict
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.crossing_evidence import CrossingWhole
from pipesched.results.diagram_evidence import Diagram
from pipesched.schedule.rescale import value_of
from solver.bounds.analytic.critical_paths import Paths
from solver.construction.timing import best_times
from solver.diagram.certificate import KIND
from solver.diagram.completion import completion
from solver.diagram.follow import least_end
from solver.diagram.steps import Steps, kept_stages, stages_on, walked_chains
from solver.diagram.whole_weights import bound, follow
from solver.diagram.whole_weights.bound import bounds_of_whole_weights, whole_orders
from solver.diagram.whole_weights.follow import least_of_whole
from solver.diagram.whole_weights.weights import weights_of
from solver.engine.finish import finished
from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.bounds.whole_weights import WholeWeights
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.step_orders.whole import schedule_of_whole
from tests.solver.diagram.test_all_orders import UNEVEN, v_shape
from tests.support.certified import assert_proved_and_no_more, attack_refutes, verdict
from tests.support.makers import problem

WORK = 10**7
UNEVEN_OF_TWO = {"forward": [9, 11], "backward": [10, 9], "weight": [11, 10]}


def line(devices: int, microbatches: int, capacity: float, times: dict[str, object], **keys: object) -> Problem:
    given: dict[str, object] = {"times": times, "memory": {"capacity": capacity}, "objective": "span", **keys}
    return problem(devices, microbatches, **given)


# Both have optima above what interruptible weight passes prove.
LONG_WEIGHTS = line(
    3,
    4,
    2,
    {"forward": [2, 7, 5], "backward": [3, 6, 6], "weight": [12, 9, 10], "transfer": 1},
    objective="makespan",
    memory={"capacity": 2, "freed_by_backward": 1},
)
V = v_shape(2, 4, 3, times={"forward": [6, 9, 6, 9], "backward": [5, 6, 2, 7], "weight": [9, 9, 5, 4], "transfer": 1})


def kept(one: Problem, devices: tuple[int, ...]) -> Steps:
    chain = next(walked_chains(one))
    found = kept_stages(one, Paths(one), chain, stages_on(one, chain, devices))
    assert found is not None
    return found.steps


def least(steps: Steps, value: int = 10**6) -> int | None:
    rest = completion(steps, WORK, Event())
    assert rest is not None
    return least_of_whole(steps, rest, value, WORK, Event()).ticks


class Everything:
    """The least end of all orders of steps with all numbers of whole weight passes in front of each; nothing left out."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.best = steps, 10**9
        self.seen = set[tuple[object, ...]]()
        count, devices = steps.microbatches, len(steps.room)
        self.go((0,) * count, (0,) * count, 0, (0,) * devices, ((),) * devices)

    def go(
        self,
        done: tuple[int, ...],
        ends: tuple[int, ...],
        last: int,
        free: tuple[int, ...],
        open_: tuple[tuple[int, ...], ...],
    ) -> None:
        """Steps done and when, by micro-batch; the last start; by device, when it is free, and the weight passes left."""
        if (done, ends, last, free, open_) in self.seen:
            return
        self.seen.add((done, ends, last, free, open_))
        steps, count = self.steps, len(self.steps.ticks)
        if min(done) == count:
            over = [now + sum(left) for now, left in zip(free, open_, strict=True)]
            self.best = min(self.best, max(over) if steps.makespan else over[0])
        for one, step in enumerate(done):
            if step == count or (one > 0 and done[one - 1] <= step):
                continue
            device, takes = int(steps.device[step]), int(steps.takes[step])
            held = sum(int(steps.takes[n]) for ran in done for n in range(ran) if steps.device[n] == device)
            if takes > 0 and 0 <= steps.room[device] < held + takes:
                continue
            lengths = sorted(set(open_[device]))
            for numbers in product(*(range(open_[device].count(length) + 1) for length in lengths)):
                left = list(open_[device])
                for length, number in zip(lengths, numbers, strict=True):
                    for _ in range(number):
                        left.remove(length)
                room = steps.room[device] - held - takes
                if takes > 0 and steps.room[device] >= 0 and len(left) * steps.waiting[device] > room:
                    continue
                came = ends[one] + int(steps.lag[step]) if step else 0
                ran = sum(a * b for a, b in zip(lengths, numbers, strict=True))
                start = max(last, came, free[device] + ran)
                end = start + int(steps.ticks[step])
                more = [int(steps.later[step])] if steps.later[step] > 0 else []
                self.go(
                    (*done[:one], step + 1, *done[one + 1 :]),
                    (*ends[:one], end, *ends[one + 1 :]),
                    start,
                    (*free[:device], end, *free[device + 1 :]),
                    (*open_[:device], tuple(sorted([*left, *more])), *open_[device + 1 :]),
                )


def drawn(random: Random, placement: str, microbatches: int, devices: int = 2) -> Problem:
    """Times that differ, some of nothing; memory that is short."""
    stages = 2 * devices if placement == "v-shape" else devices
    times: dict[str, object] = {
        kind: [random.choice((0, 1, 2, 3, 5, 8, 13)) for _ in range(stages)]
        for kind in ("forward", "backward", "weight")
    }
    if random.random() < 0.3:
        times["fused"] = [random.randint(2, 9) for _ in range(stages)]
    times["transfer"] = random.choice((0, 1, 4))
    memory = {"capacity": random.choice((2, 2.5, 3)), "freed_by_backward": random.choice((0, 0.5, 1))}
    objective = random.choice(("span", "makespan"))
    return problem(devices, microbatches, times=times, memory=memory, objective=objective, placement=placement)


@pytest.mark.parametrize("placement", ["linear", "v-shape"])
def test_it_is_the_least_end_of_all_orders_and_all_numbers_of_weight_passes(placement: str) -> None:
    """With nothing left out: on both devices, and on the first; two lengths on a device of the V."""
    random = Random(5)
    for _ in range(10):
        one = drawn(random, placement, 3 if placement == "linear" else 2)
        for devices in ((0, 1), (0,)):
            steps = kept(one, devices)
            assert least(steps) == Everything(steps).best, (one, devices)


@pytest.mark.parametrize("one", [LONG_WEIGHTS, V])
def test_more_than_interruptible_weight_passes_and_just_what_a_schedule_takes(one: Problem) -> None:
    """And below whatever value orders are followed, that is proved, or the value."""
    (found,) = whole_orders(one, Event(), 10**6)
    optimum = found.least.ticks
    assert optimum is not None
    interruptible = least_end(found.kept.steps, 512, WORK, Event())
    assert interruptible.ticks is not None and not interruptible.merged
    assert interruptible.ticks < optimum
    schedule = schedule_of_whole(one, found)
    assert schedule is not None
    assert value_of(one, best_times(one, schedule)) == optimum
    for value in (optimum - 1, optimum, optimum + 1):
        assert least(found.kept.steps, value) == min(value, optimum)
        assert_proved_and_no_more(one, bounds_of_whole_weights(one, Event(), 0, value))


def test_weight_passes_of_one_length_are_of_one_kind() -> None:
    even, uneven = v_shape(2, 4, 3), v_shape(2, 4, 3, times=UNEVEN)
    assert weights_of(kept(even, (0, 1))).first.tolist() == [0, 1, 2]
    kinds = weights_of(kept(uneven, (0, 1)))
    assert kinds.first.tolist() == [0, 2, 4]
    assert sorted(kinds.ticks[:2].tolist()) == kinds.ticks[:2].tolist() != kinds.ticks[2:].tolist()
    assert kinds.kind.tolist()[:4] == [-1] * 4 and sorted(kinds.kind.tolist()[4:]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "mistake",
    ["weight passes a tick longer", "a rest that is longer", "what is left out ends later", "all of one length"],
)
def test_an_attack_finds_what_claims_too_much(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"completion": bound.completion, "least_of_whole": bound.least_of_whole, "weights_of": follow.weights_of}

    def longer(*given: Any) -> object:
        found = plain["completion"](*given)
        return found and [one._replace(rests=one.rests + 1) for one in found]

    def later(*given: Any) -> object:
        found = plain["least_of_whole"](*given)
        return found if found.ticks is None else found._replace(ticks=found.ticks + 1)

    def longer_weights(*given: Any) -> object:
        found = plain["weights_of"](*given)
        return found._replace(ticks=found.ticks + 1)

    def all_of_one_length(*given: Any) -> object:
        found = plain["weights_of"](*given)
        return found._replace(ticks=np.full_like(found.ticks, max(found.ticks, default=0)))

    where, name, wrong, branch = {
        "a rest that is longer": (bound, "completion", longer, "V"),
        "what is left out ends later": (bound, "least_of_whole", later, "V"),
        "weight passes a tick longer": (follow, "weights_of", longer_weights, "room after W"),
        "all of one length": (follow, "weights_of", all_of_one_length, "weight passes of several lengths"),
    }[mistake]
    monkeypatch.setattr(where, name, wrong)
    assert attack_refutes(f"crossings of steps with whole weight passes, {branch}", 20)


@pytest.mark.parametrize("objective", list(Objective)[:2])
def test_the_check_proves_the_same_and_no_more(objective: Objective) -> None:
    random = Random(7)
    for placement in ("linear", "v-shape"):
        for _ in range(3):
            one = replace(drawn(random, placement, 4), objective=objective)
            for devices in (1, None):
                found = [*bounds_of_whole_weights(one, Event(), 0, 10**6, devices)]
                assert_proved_and_no_more(one, found)
                for genuine in found:
                    assert isinstance(genuine.evidence, Diagram)
                    forged = replace(genuine.evidence, below=int(genuine.value) - 1)
                    assert verdict(one, replace(genuine, evidence=forged)) is Verdict.REFUSED


@pytest.mark.parametrize(
    ("placement", "devices", "microbatches"), [("linear", 3, 8), ("linear", 4, 6), ("v-shape", 2, 6)]
)
def test_bound_and_check_leave_out_no_order_that_ends_first(placement: str, devices: int, microbatches: int) -> None:
    """More micro-batches than all orders can be tried of: of those that have come equally far many are compared."""
    random = Random(3)
    for _ in range(8):
        one = drawn(random, placement, microbatches, devices)
        assert_proved_and_no_more(one, bounds_of_whole_weights(one, Event(), 0, 10**6))


@pytest.mark.parametrize(
    "evidence",
    [
        CrossingWhole(1, (0, 1), 500),
        CrossingWhole(0, (), 500),
        CrossingWhole(0, (1, 0), 500),
        CrossingWhole(0, (0, 0), 500),
        CrossingWhole(0, (0, 2), 500),
        CrossingWhole(0, (0, 1), -1),
    ],
)
def test_evidence_of_no_steps_is_refused(evidence: CrossingWhole) -> None:
    assert verdict(v_shape(2, 8, 3), Certificate(CrossingWhole.form, 1, "", 0, evidence)) is Verdict.REFUSED


def test_nothing_is_said_of_tasks_or_blocks_or_after_a_stop_or_with_too_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = LONG_WEIGHTS
    sent = line(2, 4, 2, UNEVEN_OF_TWO | {"transfer": {"time": 2, "on": "comm"}}, streams=["compute", "comm"])
    blocks = v_shape(2, 4, 3, times={"forward": 2, "backward": 4, "overlapped": 5})
    assert [*bounds_of_whole_weights(one, Event(), 0, 900)]
    for other in (sent, blocks):
        assert [*bounds_of_whole_weights(other, Event(), 0, 900)] == []
        claim = Certificate(CrossingWhole.form, 1, "", 0, CrossingWhole(0, (0, 1), 500))
        assert verdict(other, claim) is Verdict.NOT_VERIFIED
    stop = Event()
    stop.set()
    assert [*bounds_of_whole_weights(one, stop, 0, 900)] == []
    assert [*bounds_of_whole_weights(one, Event(), 0, 900, work=10)] == []
    assert [*bounds_of_whole_weights(one, Event(), 0, 900, numbers=10)] == []
    for most in ("_OF_A_LAYER", "_OF_A_STATE"):
        with monkeypatch.context() as patched:
            patched.setattr(follow, most, 1)
            assert [*bounds_of_whole_weights(one, Event(), 0, 900)] == []


@pytest.mark.parametrize("most", ["_MOST_WHOLE", "_MOST_AT_ONCE", "_MOST_WHOLE_AT_ONCE"])
def test_the_check_tries_no_more_orders_than_it_has_time_for(most: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (genuine,) = bounds_of_whole_weights(LONG_WEIGHTS, Event(), 0, 900)
    monkeypatch.setattr(replay, most, 1)
    assert verdict(LONG_WEIGHTS, genuine) is Verdict.NOT_VERIFIED


def test_a_search_by_it_alone_finds_the_optimum_and_proves_it() -> None:
    """From a schedule of one micro-batch after the other."""
    engine = Engine(AnalyticBounds(), (Sequential(),), (WholeWeights(),), finished)
    search = Search(LONG_WEIGHTS, Limits(workers=1, deterministic=100), lambda _: None, Event(), engine)
    run(search)
    done = search.incumbent.state
    assert not done.notes
    assert done.value == done.lower_bound and done.certificates[0].kind == KIND


def test_the_sentence() -> None:
    (found,) = bounds_of_whole_weights(LONG_WEIGHTS, Event(), 0, 10**6)
    assert found.text == (
        "The forwards and gradients of stages 0, 1, 2 take turns on devices 0, 1, 2, and between them run weight passes, each "
        "without a break: a device starts one of these forwards only while its memory has room for it besides others of "
        "these; a micro-batch is away for as long as other stages take. Orders that cannot end before 1000000 are not "
        "followed to their end. In whichever order they run, all 4 micro-batches take at least 102."
    )
