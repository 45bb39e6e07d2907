"""Stages of exact duration take what was predicted in each pass: by a clock that only their sleep moves."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from runtime.running.heartbeat import Heartbeat
from runtime.running.job import ModelSpec
from runtime.running.torch_timing import predicted
from tests.support.later import later
from tests.support.makers import problem, schedule
from tests.support.run_jobs import job

torch, dist = later("torch"), later("torch.distributed")
sleep_model, tracer = (later(f"runtime.pytorch.{name}", "torch") for name in ("sleep_model", "tracer"))
worker = later("runtime.pytorch.processes.worker", "torch.distributed.pipelining.schedules")

# All numbers differ, and no two of them add up to another one.
TIMES = {"forward": [5, 7], "backward": [11, 17], "weight": [41, 83], "fused": [52, 101]}
SPLIT = schedule("F0.0 F1.0 F0.1 F1.1 B1.0 B0.0 W1.0 B1.1 W0.0 B0.1 W1.1 W0.1")
WHOLE = schedule("F0.0 F1.0 F0.1 F1.1 BW1.0 BW0.0 BW1.1 BW0.1")


@pytest.fixture(autouse=True, scope="module")
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of stages and tracer, which stands still but while a stage sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(sleep_model, "time", clock)
    monkeypatch.setattr(tracer, "time", clock)


def ends(one: Problem, order: Schedule, split: str) -> list[tuple[Pass, float, float]]:
    """Start and end of each pass in the second step, in execution order."""
    asked = job(one, order, model=ModelSpec("sleep"), split=split, steps=2, seconds_per_tick=1.0)
    found = worker.Worker(Heartbeat(), torch.device("cpu")).run(asked)
    assert found is not None and found.complaints() == []
    (row,) = found.steps[1]
    return [(each.of, each.start, each.end) for each in row]


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(("order", "split"), [(SPLIT, "autograd"), (SPLIT, "store"), (WHOLE, "store")])
def test_every_pass_begins_and_ends_when_predicted(order: Schedule, split: str) -> None:
    one = problem(1, 2, placement=[0, 0], times=TIMES)
    timeline = predicted(one, order, split, transfers=False)
    expected = [(p, timeline.start(p), timeline.end(p)) for p in order.passes_on(0)]
    assert ends(one, order, split) == expected


@pytest.mark.usefixtures("counted")
def test_with_autograd_s_split_the_first_stage_does_all_of_its_backward_in_its_weight_pass() -> None:
    """The plan's own times would be off there, and nowhere else."""
    one = problem(1, 2, placement=[0, 0], times=TIMES)
    took = {p: end - start for p, start, end in ends(one, SPLIT, "autograd")}
    assert [took[Pass(kind, 0, 0)] for kind in (F, B, W)] == [5, 0, 52]
    assert [took[Pass(kind, 1, 1)] for kind in (F, B, W)] == [7, 17, 83]
