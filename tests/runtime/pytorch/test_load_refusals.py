"""What `pipesched.torch.load` refuses, each in one line; in one process, which is the only rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pipesched
from commands.shared.file_arguments import write_schedule
from pipesched.errors import BadInput
from pipesched.files.schedule_file import ScheduleFile
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from tests.support.later import later, needs
from tests.support.makers import problem, schedule
from tests.support.saving_orders import MEMORY, named

torch, dist, nn = later("torch"), later("torch.distributed"), later("torch.nn")
needs("torch.distributed.pipelining.schedules", "torch.distributed.fsdp")


def copies(order: str = "F0.0 O0.0 F0.1 L0.0 BW0.0 BW0.1", **keys: Any) -> Timeline:
    """One device and one stage."""
    return simulate(problem(1, 2, memory=MEMORY, **keys), schedule(order))


def copied_both_ways() -> Timeline:
    """Chimera with a copy of the first activation of each device."""
    plain = named("chimera", 2, 2, placement="bidirectional", memory=MEMORY)
    rows = []
    for device in range(2):
        first, *rest = map(str, plain.schedule.passes_on(device))
        of = first[1:]
        at = next(place for place, word in enumerate(rest) if word.lstrip("BW") == of)
        rows.append(" ".join([first, f"O{of}", *rest[:at], f"L{of}", *rest[at:]]))
    return simulate(plain.problem, schedule(*rows))


def linear() -> Any:
    return nn.Linear(4, 4)


def sharded() -> Any:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(linear(), mesh=init_device_mesh("cpu", (1,)))


def on_another_device() -> dict[int, Any]:
    return {stage: nn.Linear(4, 4, device="meta") for stage in (0, 3)}


BOTH_WAYS = named("dualpipe", 2, 4, placement="bidirectional")
TWO_DEVICES = named("pipeoffload-full", 2, 4, memory=MEMORY)
REFUSED: dict[str, tuple[Timeline, Callable[[], Any], str]] = {
    "a schedule that is not valid": (
        copies("F0.0 O0.0 F0.1 L0.0 BW0.0 B0.1"),
        lambda: {0: linear()},
        "only a valid schedule can be run; in this one",
    ),
    "micro-batches of several shapes": (
        copies(microbatch_scale=[1, 2]),
        lambda: {0: linear()},
        "found microbatch_scale; allowed: whole micro-batches of one shape",
    ),
    "copies on two chains": (
        copied_both_ways(),
        lambda: {0: linear()},
        "takes a stage on one device only",
    ),
    "another number of ranks": (TWO_DEVICES, lambda: {0: linear()}, "has 2 devices; found a group of 1 rank"),
    "another rank's stages": (copies(), lambda: {1: linear()}, "stages: found 1; rank 0 of this schedule runs 0"),
    "DistributedDataParallel": (
        copies(),
        lambda: {0: nn.parallel.DistributedDataParallel(linear())},
        "stages: found DistributedDataParallel with offload or recomputation; allowed: plain modules",
    ),
    "FSDP": (copies(), lambda: {0: sharded()}, r"stages: found FSDP\w+ with offload or recomputation"),
    "PipelineStages for both ways": (BOTH_WAYS, list, "the module of each stage by its number"),
    "both ways on a GPU": (BOTH_WAYS, on_another_device, "stages: found on meta; allowed: on CPU over gloo"),
}


@pytest.fixture(autouse=True, scope="module")
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_is_refused_in_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline, stages, said = REFUSED[name]
    if timeline is BOTH_WAYS:
        monkeypatch.setattr(dist, "get_world_size", lambda *_: 2)
    path = write_schedule(tmp_path / "schedule.json", ScheduleFile(timeline))
    with pytest.raises(BadInput, match=said) as refused:
        pipesched.torch.load(path, stages(), nn.functional.mse_loss)
    (line,) = refused.value.mistakes
    assert "\n" not in line


def test_a_step_without_loss_or_of_another_batch_is_refused(tmp_path: Path) -> None:
    path = write_schedule(tmp_path / "schedule.json", ScheduleFile(copies()))
    x = torch.ones(4, 4)
    runtime = pipesched.torch.load(path, {0: linear()}, nn.functional.mse_loss)
    runtime.step(x, target=x)
    with pytest.raises(BadInput, match="step: found a batch of 3 samples; allowed: a batch of 2 micro-batches"):
        runtime.step(x[:3], target=x)
    with pytest.raises(BadInput, match="step: found none; allowed: a target of 2 micro-batches"):
        runtime.step(x)
    without = pipesched.torch.load(path, {0: linear()})
    with pytest.raises(BadInput, match="loss_fn: found none; allowed: a loss"):
        without.step(x, target=x)
