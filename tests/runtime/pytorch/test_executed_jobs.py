"""Schedules executed by PyTorch in several processes: gradients, order, times, and that what is wrong is caught.

In one file, since they share the processes: each group of jobs is run once.
"""

from __future__ import annotations

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import BW, B, W
from runtime.pytorch.run import measured_of
from runtime.running.torch_timing import predicted
from tests.support.later import needs
from tests.support.run_jobs import GROUPS, SEED, SPLITS, UNIT, on_four_devices, on_two_devices, ran

needs("torch.distributed.pipelining.schedules")

RIGHT = ("random", "solved", "one micro-batch", "right", "saving", "asleep", *HEURISTICS.names())


@pytest.mark.parametrize("devices", GROUPS)
def test_every_gradient_is_the_reference_s_and_the_order_the_file_s(devices: int) -> None:
    wrong, checked = [], 0
    for name, (one, outcome) in ran(devices).items():
        if not name.startswith(RIGHT):
            continue
        planned = tuple(one.order_on(device) for device in range(devices))
        assert [sorted(row) for row in planned] == [sorted(one.schedule.passes_on(d)) for d in range(devices)]
        wrong += [f"{name}: {line}" for line in outcome.complaints()]
        wrong += [] if outcome.executed == planned else [f"{name}: executed {outcome.executed}"]
        # A step compares all parameters of every stage: a block has 12, a sleeping stage one.
        assert outcome.compared >= one.compared * (12 if one.model.name == "gpt" else 1) * one.depth
        assert len(outcome.steps) == one.steps
        checked += 1
    assert checked >= 6
    assert not wrong, "\n".join([f"PIPESCHED_JOBS_SEED={SEED}", *wrong])


def test_the_schedules_run_are_those_that_are_meant() -> None:
    published = on_four_devices()
    beyond = set(HEURISTICS.names()) - {one.name.split(" on ")[0] for one in published}
    # PyTorch's stages take micro-batches of one shape, and their activations do not move to other devices.
    others = ("microbatch_order", "pipelines", "sequence_chunks", "modules", "memory.offload.to")
    assert beyond == {one.name for one in HEURISTICS if any(key in one.needs for key in others)}
    assert any(one.rows is None for one in published)
    assert {one.split for one in published} == set(SPLITS)
    random = [one for one in on_two_devices() if one.name.startswith("random")]
    assert {p.kind for one in random for p in one.schedule.passes()} >= {B, W, BW}
    assert any(one.labels != tuple(sorted(one.labels)) for one in random)
    assert {one.problem.placement.name for one in random} == {
        "linear", "interleaved", "v-shape", "wave", "explicit", "bidirectional",
    }  # fmt: skip


# What is wrong is caught: the comparison sees what the runtime itself passes over in silence.


@pytest.mark.parametrize(
    "name",
    [
        "swapped receive",
        "no REDUCE_GRAD",
        "last stage out of order",
        "W removed both ways",
        "W removed beside copies",
    ],
)
def test_wrong_gradients_are_seen(name: str) -> None:
    outcome = ran(2)[name][1]
    assert outcome.refused is None
    assert not outcome.good
    worst = outcome.worst_gradient
    assert outcome.missing or (worst is not None and worst.value > 1e6 * worst.limit)
    assert any("gradient" in line for line in outcome.complaints())


def test_a_missing_w_is_refused_by_the_runtime() -> None:
    outcome = ran(2)["W removed"][1]
    assert outcome.refused
    assert outcome.complaints() == [f"the runtime refused the schedule: {outcome.refused}"]


def test_another_order_than_the_schedule_s_is_seen() -> None:
    """The doctored rows hold other passes than the job's schedule."""
    assert not ran(2)["last stage out of order"][1].ordered
    assert ran(2)["right with comms"][1].ordered


def test_the_same_without_the_fault_is_right() -> None:
    for name in ("right with comms", "right both ways"):
        assert ran(2)[name][1].complaints() == []


# Stages of exact duration: passes take the time that was predicted, and wait for what the plan says.
NAMES = ("1f1b, store", "zb-h1, store", "solved, store", "late W, autograd")


@pytest.mark.parametrize("name", NAMES)
def test_no_pass_ends_sooner_than_predicted_nor_begins_before_what_it_waits_for(name: str) -> None:
    """However busy the machine is: sleeping never ends early, and all processes read one clock."""
    one, outcome = ran(3)[f"asleep {name}"]
    timeline = predicted(one.problem, one.schedule, one.split, transfers=False)
    passes = timeline.schedule.pass_set
    measured = measured_of(one, outcome)
    planned = UNIT * one.problem.in_units(max(map(timeline.end, one.schedule.passes())))
    assert min(measured.makespans) >= float(planned)
    for step in outcome.steps:
        found = {each.of: each for row in step for each in row}
        assert found.keys() == passes
        for p, each in found.items():
            assert each.seconds >= UNIT * float(one.problem.in_units(timeline.end(p) - timeline.start(p)))
            for before, _ in one.problem.network.predecessors(p, passes):
                assert found[before].end <= each.start, (before, p)
