"""Program of four ranks, two pipeline ranks times two replicas, that run a CSV with gathers on stages sharded by
FSDP."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from tests.support.fsdp_sizes import BATCH, MICROBATCHES, PIPELINE, REPLICAS, STAGES, WIDTH


def stage(number: int) -> nn.Module:
    """A stage with the same parameters wherever it is made."""
    torch.manual_seed(number)
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()).double()


def batch(replica: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of a replica."""
    torch.manual_seed(100 + replica)
    return torch.randn(BATCH, WIDTH).double(), torch.randn(BATCH, WIDTH).double()


def expected() -> dict[int, list[Tensor]]:
    """Return the gradients of every stage computed in one process, as means over replicas and micro-batches."""
    stages = [stage(n) for n in range(STAGES)]
    for replica in range(REPLICAS):
        inputs, targets = batch(replica)
        (nn.functional.mse_loss(nn.Sequential(*stages)(inputs), targets) / REPLICAS).backward()
    return {n: [p.grad for p in one.parameters() if p.grad is not None] for n, one in enumerate(stages)}


def main(*folders: str) -> None:
    """Run the schedule.csv of each folder."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (PIPELINE, REPLICAS), mesh_dim_names=("pp", "dp"))
    for folder in folders:
        run(folder, mesh)
    dist.destroy_process_group()


def run(folder: str, mesh: DeviceMesh) -> None:
    """Run two steps; write this rank's largest gradient difference and its number of gathers to a file."""
    rank = dist.get_rank()
    place, replica = divmod(rank, REPLICAS)
    modules = {n: fully_shard(stage(n), mesh=mesh["dp"], reshard_after_forward=False) for n in range(place, STAGES, 2)}
    group, device = mesh["pp"].get_group(), torch.device("cpu")
    inputs, targets = batch(replica)
    example = inputs.chunk(MICROBATCHES)[0]
    carried = example.clone().requires_grad_()  # what gradients are sent for
    stages = [
        PipelineStage(
            one, n, STAGES, device, input_args=(carried if n else example,), output_args=(carried,), group=group
        )
        for n, one in modules.items()
    ]
    runtime = _PipelineScheduleRuntime(stages, MICROBATCHES, loss_fn=nn.functional.mse_loss, scale_grads=True)
    runtime._load_csv(f"{folder}/schedule.csv", format="compute_comms")
    gathered, worst = 0, 0.0
    for one in modules.values():
        unshard = one.unshard

        def counted(*args: object, unshard: object = unshard, **keys: object) -> object:
            nonlocal gathered
            gathered += 1
            return unshard(*args, **keys)  # type: ignore[operator]

        one.unshard = counted
    for _ in range(2):
        for one in modules.values():
            one.zero_grad()
        last = {"target": targets, "losses": []} if place == PIPELINE - 1 else {}
        runtime.step(*([inputs] if place == 0 else []), **last)
        for n, grads in expected().items():
            for mine, theirs in zip(modules[n].parameters() if n in modules else (), grads, strict=False):
                assert mine.grad is not None
                worst = max(worst, float((mine.grad.full_tensor() - theirs).abs().max()))
    Path(folder, f"rank{rank}").write_text(f"{worst} {gathered}")


if __name__ == "__main__":
    main(*sys.argv[1:])
