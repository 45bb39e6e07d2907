"""One process's share of a job: its stages of the model, built and wrapped for PyTorch's pipeline runtime."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage

from pipesched.problem.quantities import MicrobatchId, StageId
from runtime.pytorch.load_model import load_model
from runtime.pytorch.models import PipelineModel, gpt
from runtime.pytorch.passes.boundary import Boundary, FlatStage, boundary_of, call, to_device
from runtime.pytorch.passes.weight_split import WeightStore, store_weight_gradients
from runtime.pytorch.sleep_model import SleepingStage, sleeping
from runtime.pytorch.stage_chain import ChainWalk
from runtime.running.job import Job
from runtime.running.torch_timing import sleeping_seconds


@dataclass(frozen=True)
class RankStages:
    """A process's stages by the placement's stage number; `model` has its data and loss, and no stages.

    `stages` are the `modules` wrapped for PyTorch's runtime, and run in the pipeline; `twins` are the same stages as
    they were built, sharing the parameters, for the reference. `takes` and `gives` are the input and output of each.
    `draws` seeds those that use random numbers.
    """

    model: PipelineModel
    modules: Mapping[StageId, nn.Module]
    twins: Mapping[StageId, nn.Module]
    stages: Mapping[StageId, PipelineStage]
    takes: Mapping[StageId, Boundary]
    gives: Mapping[StageId, Boundary]
    draws: Draws


def build(job: Job) -> PipelineModel:
    """Return the model of a job; it is the same in every process.

    `BadInput` if it cannot be built.
    """
    options = {"dtype": getattr(torch, job.dtype), "seed": job.seed, **job.model.options}
    if job.model.name == "gpt":
        return gpt(job.depth, **options)
    if job.model.name == "sleep":
        return sleeping(job.depth, **options)
    return load_model(job.model.name, job.depth, **options)


def hold(job: Job, rank: int, device: torch.device) -> RankStages:
    """Return the stages of device `rank` of the placement, on a torch device; to be called by every process at once.

    One micro-batch runs forward through all stages, to learn what is sent. `BadInput` if the model cannot be built or
    its tensors sent.
    """
    placement = job.problem.placement
    model = build(job)
    position = {number: at for chain in placement.chains for at, number in enumerate(chain)}
    modules: dict[int, nn.Module] = {}
    for number in placement.stages_of[rank]:
        module = model.stage(position[number])
        replica_here = any(module is other for other in modules.values())
        modules[number] = (copy.deepcopy(module) if replica_here else module).to(device)
    model.stages = ()  # those of the other processes are given up
    twins = {number: twin(module) for number, module in modules.items()}
    draws = Draws(job.seed, device)
    takes, gives = _boundaries(job, model, twins, draws, rank, device)
    stages: dict[int, PipelineStage] = {}
    for number, module in modules.items():
        store = _store(job, module)
        if isinstance(module, SleepingStage):
            module.seconds = sleeping_seconds(job.problem, number, job.seconds_per_tick)
        stages[number] = PipelineStage(
            FlatStage(module, takes[number].spec), position[number], job.depth, device,
            input_args=takes[number].like, output_args=gives[number].like, dw_builder=store,
        )  # fmt: skip
    return RankStages(model, modules, twins, stages, takes, gives, draws)


def _store(job: Job, module: nn.Module) -> WeightStore | None:
    if job.split != "store":
        return None
    if isinstance(module, SleepingStage):
        module.store = WeightStore()
        return module.store
    return store_weight_gradients(module)


def _boundaries(
    job: Job, model: PipelineModel, twins: Mapping[int, nn.Module], draws: Draws, rank: int, device: torch.device
) -> tuple[dict[int, Boundary], dict[int, Boundary]]:
    """Return the input and output of each stage here, which fix the messages' shapes before the first step.

    Otherwise PyTorch's runtime runs a backward of its own first, which would fill a weight store with gradients that
    the first step then adds to its own. Both are by stage number. `rank` is that of this process. `BadInput` if one has
    something that is no tensor.
    """
    takes: dict[int, Boundary] = {}
    gives: dict[int, Boundary] = {}

    def run(number: int, value: object) -> object:
        takes[number] = boundary_of(value, f"what stage {number} is given")
        result = draws.watch(number, lambda: call(twin(twins[number]), value))
        gives[number] = boundary_of(result, f"what stage {number} returns")
        return result

    for chain in job.problem.placement.chains:
        walk = ChainWalk(job.problem.placement, chain, rank, device)
        walk.forward(to_device(model.inputs(0), device) if walk.first_is_here else None, run)
    return takes, gives


_Result = TypeVar("_Result")


class Draws:
    """Stages that draw random numbers in their forward, and the seeds of their forwards.

    A schedule runs forwards in another order than the reference, so they would draw other numbers; seeded by `seed`,
    stage and micro-batch they draw the same. `stages` has the numbers of those that `watch` saw draw.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._seed, self._device = seed, device
        self.stages: set[StageId] = set()

    def watch(self, stage: StageId, forward: Callable[[], _Result]) -> _Result:
        """Run a forward of a stage and return its result; note if it drew random numbers."""
        before = self._state()
        result = forward()
        if any(not torch.equal(one, other) for one, other in zip(before, self._state(), strict=True)):
            self.stages.add(stage)
        return result

    def seed(self, position: int, stage: StageId, microbatch: MicrobatchId) -> None:
        """Seed the random generators before a forward, if its `stage` draws random numbers; else do nothing.

        `position` is the position of the stage on its chain; `microbatch` is numbered over all steps.
        """
        if stage in self.stages:
            torch.manual_seed((self._seed * 1_000_003 + position) * 1_000_003 + microbatch)

    def _state(self) -> list[torch.Tensor]:
        on_gpu = [torch.cuda.get_rng_state(self._device)] if self._device.type == "cuda" else []
        return [torch.get_rng_state(), *on_gpu]


def twin(module: nn.Module) -> nn.Module:
    """Return a copy of a stage with separate buffers and state that shares the original's parameters."""
    shared = {id(parameter): parameter for parameter in module.parameters()}
    return copy.deepcopy(module, shared)
