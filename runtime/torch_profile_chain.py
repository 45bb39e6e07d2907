"""Builds the model to be profiled and, with one forward through all of it, what each stage is given."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from runtime.profile import Request
from runtime.torch_model import PipelineModel, gpt, load_model
from runtime.torch_profile_passes import prepared
from runtime.torch_profile_stage import StageBench


class Chain(NamedTuple):
    """A model on its device, with what each stage is given: its input, and the gradient of its output."""

    model: PipelineModel
    inputs: list[Tensor]
    gradients: list[Tensor | None]

    def links(self) -> list[Tensor]:
        """What goes from each stage to the next."""
        return self.inputs[1:]

    def output_bytes(self, number: int) -> int:
        """Bytes that stage `number` sends to the next; none from the last."""
        gradient = self.gradients[number]
        return 0 if gradient is None else gradient.nbytes


def build_chain(request: Request, device: torch.device) -> Chain:
    """Build the model and run it forward once, to have every stage's input."""
    options = {"dtype": getattr(torch, request.dtype), "seed": request.seed, **request.options}
    if request.model == "gpt":
        model = gpt(request.depth, **options)
    else:
        model = load_model(request.model, request.depth, **options)
    x = model.inputs(0).to(device)
    inputs, gradients = [], []
    chance = torch.Generator().manual_seed(request.seed)
    for number, stage in enumerate(model.stages):
        inputs.append(x)
        with torch.no_grad():
            x = stage.to(device)(x)
        last = number == request.depth - 1
        noise = torch.randn(x.shape, generator=chance).to(device, x.dtype)
        gradients.append(None if last else noise)
    return Chain(model, inputs, gradients)


def bench_of(request: Request, chain: Chain, number: int, device: torch.device) -> StageBench:
    """Stage `number` ready to be measured: with checkpoints and weight store where asked for, the loss on the last."""
    module, store = prepared(chain.model.stages[number], device, request.split, request.checkpoints)
    last = number == request.depth - 1
    targets = chain.model.targets(0).to(device) if last else None

    def loss(output: Tensor) -> Tensor:
        assert targets is not None
        return chain.model.loss(output, targets)

    x, gradient = chain.inputs[number], chain.gradients[number]
    return StageBench(module, x, gradient, number == 0, loss if last else None, store)
