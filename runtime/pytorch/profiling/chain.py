"""The model to be profiled, and the inputs of each stage, found by one forward through all stages."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pipesched.errors import BadInput
from pipesched.problem.quantities import StageId
from runtime.profiling.profile import Request
from runtime.pytorch.load_model import load_model
from runtime.pytorch.models import PipelineModel, gpt
from runtime.pytorch.profiling.stage_bench import StageBench
from runtime.pytorch.profiling.stage_passes import prepared


class Chain(NamedTuple):
    """A model with all stages built and on the device, and by stage its input and a random gradient of its output.

    The gradient is None for the last stage.
    """

    model: PipelineModel
    inputs: list[Tensor]
    gradients: list[Tensor | None]

    def links(self) -> list[Tensor]:
        """The tensors sent from each stage to the next: entry s leaves stage s; the last stage has none."""
        return self.inputs[1:]

    def output_bytes(self, number: StageId) -> int:
        """Return the bytes that stage `number` sends to the next; 0 for the last."""
        gradient = self.gradients[number]
        return 0 if gradient is None else gradient.nbytes


def build_chain(request: Request, device: torch.device) -> Chain:
    """Build the model and run micro-batch 0 forward, without gradients, to get every stage's input.

    `BadInput` if the model cannot be built, or a stage passes on anything but one tensor.
    """
    options = {"dtype": getattr(torch, request.dtype), "seed": request.seed, **request.options}
    if request.model == "gpt":
        model = gpt(request.depth, **options)
    else:
        model = load_model(request.model, request.depth, **options)
    model = model.built()
    x = model.inputs(0)
    inputs, gradients = [], []
    generator = torch.Generator().manual_seed(request.seed)
    for number in range(request.depth):
        x = _one_tensor(number, x).to(device)
        inputs.append(x)
        with torch.no_grad():
            x = model.stage(number).to(device)(x)
        last = number == request.depth - 1
        x = _one_tensor(number + 1, x)
        noise = torch.randn(x.shape, generator=generator).to(device, x.dtype)
        gradients.append(None if last else noise)
    return Chain(model, inputs, gradients)


def _one_tensor(number: int, value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise BadInput(
            f"--model: what stage {number} is given is a {type(value).__name__}; allowed: one tensor, since `profile`"
            " measures stages between single tensors (`run` takes tuples and dicts too)"
        )
    return value


def bench_of(request: Request, chain: Chain, number: StageId, device: torch.device) -> StageBench:
    """Return a stage ready to be measured: with checkpoints and weight store if requested, and the loss on the last."""
    module, store = prepared(chain.model.stage(number), device, request.split, request.checkpoints)
    last = number == request.depth - 1
    targets = chain.model.targets(0).to(device) if last else None

    def loss(output: Tensor) -> Tensor:
        assert targets is not None
        return chain.model.loss(output, targets)

    x, gradient = chain.inputs[number], chain.gradients[number]
    return StageBench(module, x, gradient, number == 0, loss if last else None, store)
