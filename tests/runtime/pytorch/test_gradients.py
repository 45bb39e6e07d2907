"""Schedules executed by PyTorch in several processes: every loss and gradient is the reference's, the order the file's."""

from __future__ import annotations

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import BW, B, W
from tests.support.run_jobs import GROUPS, SPLITS, on_four_devices, on_two_devices, ran

pytest.importorskip("torch.distributed.pipelining.schedules")

RIGHT = ("random", "solved", "one micro-batch", "right", "asleep", *HEURISTICS.names())


@pytest.mark.parametrize("devices", GROUPS)
def test_every_gradient_is_the_reference_s_and_the_order_the_file_s(devices: int) -> None:
    wrong, checked = [], 0
    for name, (one, outcome) in ran(devices).items():
        if not name.startswith(RIGHT):
            continue
        planned = tuple(tuple(one.schedule.passes_on(device)) for device in range(devices))
        wrong += [f"{name}: {line}" for line in outcome.complaints()]
        wrong += [] if outcome.executed == planned else [f"{name}: executed {outcome.executed}"]
        # A step compares all parameters of every stage: a block has 12, a sleeping stage one.
        assert outcome.compared >= one.compared * (12 if one.model.name == "gpt" else 1) * one.depth
        assert len(outcome.steps) == one.steps
        checked += 1
    assert checked >= 9
    assert not wrong, "\n".join(wrong)


def test_the_schedules_run_are_those_that_are_meant() -> None:
    published = list(on_four_devices())
    beyond = set(HEURISTICS.names()) - {one.name.split(" on ")[0] for one in published}
    # Its stages take micro-batches of one shape.
    assert beyond == {"1f1b-small-ends", "interleaved-small-ends"}
    assert any(one.rows is None for one in published)
    assert {one.split for one in published} == set(SPLITS)
    random = [one for one in on_two_devices() if one.name.startswith("random")]
    assert {p.kind for one in random for p in one.schedule.passes()} >= {B, W, BW}
    assert any(one.labels != tuple(sorted(one.labels)) for one in random)
    assert {one.problem.placement.name for one in random} == {
        "linear", "interleaved", "v-shape", "wave", "explicit", "bidirectional",
    }  # fmt: skip
