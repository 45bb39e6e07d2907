"""PyTorch's pipeline runtime loaded with a schedule: for `run`, and for a training loop of the user's own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.nn.parallel import DistributedDataParallel

from pipesched.errors import BadInput
from pipesched.files.schedule_file import read_schedule
from pipesched.problem.formatting import counted
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import StageId
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from runtime.pytorch.program_executor import ProgramExecutor
from runtime.pytorch.stages_runtime import StagesRuntime
from runtime.running.job import Job, job_for, saves

Stages = Mapping[int, nn.Module] | Sequence[PipelineStage]
Loss = Callable[[Any, Any], Tensor]


def load(
    schedule: str | Path, stages: Stages, loss_fn: Loss | None = None, *, comms: bool = True, scale_grads: bool = True
) -> _PipelineScheduleRuntime | StagesRuntime:
    """Return the runtime of this rank, ready for `step`, which executes the order of a schedule file.

    `loss_fn(output, target)` is the loss of a micro-batch, needed where a chain's last stage is. `stages` are this
    rank's: the module of each by its number, or `PipelineStage` objects. With `comms` sends and receives are placed as
    in our plan, without it as PyTorch does. A schedule with offload, recomputation or several chains gets our own
    runtime, whatever `comms` is. `step` takes the whole batch of the schedule's micro-batches; with `scale_grads` it
    divides gradients by their number. The process group must exist. `BadInput` for what does not fit the schedule.
    """
    timeline = read_schedule(schedule).timeline
    where = timeline.problem.placement
    if saves(timeline.schedule) or len(where.chains) > 1:
        return _of_ours(str(schedule), timeline, stages, loss_fn, scale_grads)
    job = job_for(timeline, Job("", timeline.problem, timeline.schedule, (), comms=comms))
    mine = [_stage(number, stages[number], where) for number in stages] if isinstance(stages, Mapping) else [*stages]
    mine.sort(key=lambda stage: stage.stage_index)
    _check(mine, where, str(schedule))
    return runtime_of(job, mine, loss_fn, scale_grads)


def _of_ours(name: str, timeline: Timeline, stages: Stages, loss_fn: Loss | None, scale_grads: bool) -> StagesRuntime:
    """Return our runtime for what PyTorch's does not support: offload, recomputation, or bidirectional placements.

    `BadInput` if the schedule is invalid other than in memory, or a stage is wrapped by data parallelism; `name` is the
    schedule's file, for messages. With `scale_grads` gradients are divided by the number of micro-batches.
    """
    broken = next((violation for violation in validate(timeline) if violation.rule != "memory"), None)
    if broken is not None:
        raise BadInput(f"{name}: only a valid schedule can be run; in this one {broken.text}")
    problem, program = timeline.problem, job_for(timeline).program
    assert program is not None
    bidirectional = len(problem.placement.chains) > 1
    given = stages if isinstance(stages, Mapping) or bidirectional else {one.stage_index: one.submod for one in stages}
    modules = _modules_of(given, problem.placement, name)
    if bidirectional:
        _on_cpu(modules)
    wrapped = next((one for one in modules.values() if isinstance(one, DistributedDataParallel | FSDPModule)), None)
    if wrapped is not None:
        features = "both directions" if bidirectional else "offload or recomputation"
        raise BadInput(
            f"stages: found {type(wrapped).__name__} with {features}; "
            "allowed: plain modules, whose gradients the training loop reduces after step"
        )
    return StagesRuntime(
        problem,
        modules,
        loss_fn,
        lambda local, loss: ProgramExecutor(problem, program, local, loss, scale_grads),
    )


def _on_cpu(modules: Mapping[StageId, nn.Module]) -> None:
    on = next((one.device for module in modules.values() for one in module.parameters()), torch.device("cpu"))
    if on.type != "cpu":
        raise BadInput(f"stages: found on {on}; allowed: on CPU over gloo, the only way in which this was tried")


def runtime_of(
    job: Job, stages: Sequence[PipelineStage], loss_fn: Loss | None, scale_grads: bool = True
) -> _PipelineScheduleRuntime:
    """Return PyTorch's runtime of these stages, this rank's, with a job's rows loaded; `job.rows` must not be None.

    `loss_fn(output, target)` is the loss of a micro-batch, needed where the last stage is. With `scale_grads` it
    divides gradients by the number of micro-batches.
    """
    assert job.rows is not None
    runtime = _PipelineScheduleRuntime(  # type: ignore[no-untyped-call]
        [*stages], job.problem.microbatches, loss_fn=loss_fn, scale_grads=scale_grads
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.csv"
        path.write_text(job.rows)
        runtime._load_csv(str(path), format="compute_comms" if job.comms else "compute_only")
    return runtime


def _stage(number: StageId, module: nn.Module, where: Placement) -> PipelineStage:
    """Return a stage on the device of its parameters, `BadInput` if it has none.

    PyTorch finds the shapes of its messages in the first step.
    """
    device = next((parameter.device for parameter in module.parameters()), None)
    if device is None:
        raise BadInput(f"stages: stage {number} has no parameters to tell its device; allowed: a PipelineStage of it")
    return PipelineStage(module, number, where.stages, device)


def _modules_of(stages: Stages, where: Placement, name: str) -> Mapping[StageId, nn.Module]:
    """Return the modules of this rank by stage, for our own runtime.

    Raises `BadInput` if they are not those of this rank, if there are not as many ranks as devices, and for
    `PipelineStage`s of a bidirectional placement. `name` is the schedule's file, for messages.
    """
    if not isinstance(stages, Mapping):
        raise BadInput(
            f"{name}: a {where.name} placement holds every stage on two devices, which a PipelineStage cannot tell;"
            " allowed: the module of each stage by its number"
        )
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks != where.devices:
        raise BadInput(f"{name}: has {counted(where.devices, 'device')}; found a group of {counted(ranks, 'rank')}")
    if sorted(stages) != sorted(where.stages_of[rank]):
        found, wanted = (", ".join(map(str, sorted(one))) for one in (stages, where.stages_of[rank]))
        raise BadInput(f"stages: found {found}; rank {rank} of this schedule runs {wanted}")
    return stages


def _check(stages: Sequence[PipelineStage], where: Placement, name: str) -> None:
    """Raise `BadInput` unless the rank has the schedule's stages, and there are as many ranks as devices.

    `name` is the schedule's file, for the message.
    """
    if not stages:
        raise BadInput("stages: found none; allowed: those that this rank runs")
    rank, ranks = stages[0].group_rank, stages[0].group_size
    if ranks != where.devices:
        raise BadInput(f"{name}: has {counted(where.devices, 'device')}; found a group of {counted(ranks, 'rank')}")
    found, wanted = [stage.stage_index for stage in stages], sorted(where.stages_of[rank])
    if found != wanted or any(stage.num_stages != where.stages for stage in stages):
        raise BadInput(
            f"stages: found {', '.join(map(str, found))} of {stages[0].num_stages}; rank {rank} of this schedule runs"
            f" {', '.join(map(str, wanted))} of {where.stages}"
        )
