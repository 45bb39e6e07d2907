"""Builds what one process holds of a job: its stages of the model, wrapped as PyTorch's pipeline runtime wants them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage

from runtime.torch_job import Job
from runtime.torch_model import PipelineModel, gpt, load_model
from runtime.torch_rule import sleeping_seconds
from runtime.torch_sleep import SleepingStage, sleeping
from runtime.torch_split import WeightStore, store_weight_gradients


class Held(NamedTuple):
    """A process's stages by the placement's stage number, and an input and output of each to make buffers like."""

    model: PipelineModel
    modules: Mapping[int, nn.Module]
    stages: Mapping[int, PipelineStage]
    shapes: Mapping[int, tuple[Tensor, Tensor]]


def build(job: Job) -> PipelineModel:
    """The whole model of a job; the same in every process."""
    options = {"dtype": getattr(torch, job.dtype), "seed": job.seed, **job.model.options}
    if job.model.name == "gpt":
        return gpt(job.depth, **options)
    if job.model.name == "sleep":
        return sleeping(job.depth, **options)
    return load_model(job.model.name, job.depth, **options)


def hold(job: Job, device: int, on: torch.device) -> Held:
    """The stages that device `device` of the placement runs, on the torch device `on`."""
    where = job.problem.placement
    model = build(job)
    metas = _shapes(model, on)
    modules: dict[int, nn.Module] = {}
    stages: dict[int, PipelineStage] = {}
    shapes: dict[int, tuple[Tensor, Tensor]] = {}
    for number in where.stages_of[device]:
        position = where.chains[where.chain_index[number]].index(number)
        module = copy.deepcopy(model.stages[position]).to(on)
        store = _store(job, module)
        if isinstance(module, SleepingStage):
            module.seconds = sleeping_seconds(job.problem, number, job.seconds_per_tick)
        modules[number], shapes[number] = module, metas[position]
        stages[number] = PipelineStage(
            module, position, job.depth, on, input_args=metas[position][0], output_args=metas[position][1],
            dw_builder=store,
        )  # fmt: skip
    return Held(model, modules, stages, shapes)


def _store(job: Job, module: nn.Module) -> WeightStore | None:
    if job.split != "store":
        return None
    if isinstance(module, SleepingStage):
        module.store = WeightStore()
        return module.store
    return store_weight_gradients(module)


def _shapes(model: PipelineModel, on: torch.device) -> list[tuple[Tensor, Tensor]]:
    """An input and an output like each stage's, which fix the messages' shapes before the first step.

    Left to find them out itself, PyTorch's runtime runs a backward of its own first, which would fill a weight store
    with gradients that the first step then adds to its own.
    """
    found: list[tuple[Tensor, Tensor]] = []
    with torch.no_grad(), torch.random.fork_rng(devices=[on] if on.type == "cuda" else []):
        x = model.inputs(0).to(on)
        for stage in model.stages:
            y = copy.deepcopy(stage).to(on)(x)
            found.append((_like(x), _like(y)))
            x = y
    return found


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor).requires_grad_(tensor.is_floating_point())
