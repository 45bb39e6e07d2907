"""Passes of one stage in isolation, run exactly as PyTorch's pipeline runtime would, to measure them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.pipelining._backward import stage_backward, stage_backward_input, stage_backward_weight
from torch.utils.checkpoint import checkpoint

from pipesched.problem.quantities import MicrobatchId
from runtime.pytorch.passes.weight_split import Todo, WeightStore, store_weight_gradients


class StagePasses:
    """One stage, and the tensors that it keeps between the passes of its micro-batches.

    They are kept as `torch.distributed.pipelining.PipelineStage` does: inputs and output from F to the backward; with
    autograd's split, inputs, output, its gradient and the graph from B to W. The tensors received from other stages
    (`x`, `gradient`) belong to the caller, as to the runtime's receive buffers there. `loss` maps the last stage's
    output to a scalar; it belongs to F. With a `store`, B leaves the weights' gradients to it; without one, autograd
    splits, and B of the first stage does nothing: its W is the whole backward.
    """

    def __init__(
        self, module: nn.Module, first: bool, loss: Callable[[Tensor], Tensor] | None, store: WeightStore | None
    ) -> None:
        self._module, self._first, self._loss, self._store = module, first, loss, store
        self._forwarded: dict[int, tuple[Tensor, Tensor, list[Tensor]]] = {}  # output, what backward starts from, input
        self._graphs: dict[int, tuple[Any, ...]] = {}
        self._todo: dict[int, Todo] = {}

    def forward(self, microbatch: MicrobatchId, x: Tensor) -> None:
        """Run F on input `x`, which requires a gradient unless the stage is the first."""
        output = self._module(x)
        result = output if self._loss is None else self._loss(output)
        self._forwarded[microbatch] = output, result, [x]

    def fused(self, microbatch: MicrobatchId, gradient: Tensor | None) -> None:
        """Run BW: gradients of the input and of the weights; `gradient` is that of the output, None for the loss."""
        _, result, inputs = self._forwarded.pop(microbatch)
        stage_backward(result, gradient, inputs)
        if self._store is not None:
            self._store()()

    def backward(self, microbatch: MicrobatchId, gradient: Tensor | None) -> None:
        """Run B: the gradient of the input, as far as the split can separate it; the remainder is kept for W.

        `gradient` is that of the output, None for the loss.
        """
        _, result, inputs = self._forwarded.pop(microbatch)
        if self._store is not None:
            stage_backward(result, gradient, inputs)
            self._todo[microbatch] = self._store()
            return
        groups = None
        if not self._first:
            grads = None if gradient is None else [gradient]
            _, groups = stage_backward_input([result], grads, inputs, self._module.parameters())
        self._graphs[microbatch] = inputs, groups, result, gradient

    def weight(self, microbatch: MicrobatchId) -> None:
        """Run W, the gradients of the weights, once after the micro-batch's B; they are added to `grad`."""
        if self._store is not None:
            self._todo.pop(microbatch)()
            return
        inputs, groups, result, gradient = self._graphs.pop(microbatch)
        if groups is None:
            stage_backward(result, gradient, inputs)
        else:
            stage_backward_weight(self._module.parameters(), groups)


class Checkpointed(nn.Module):
    """A part of a stage that keeps only its input and runs its forward again in the backward."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = checkpoint(self.part, x, use_reentrant=False)
        return result


def with_checkpoints(stage: nn.Module) -> nn.Module:
    """Return the stage with activation checkpointing.

    Each part of a `nn.Sequential` is checkpointed, and any other stage as a whole.
    """
    if isinstance(stage, nn.Sequential):
        return nn.Sequential(*map(Checkpointed, stage))
    return Checkpointed(stage)


def prepared(
    stage: nn.Module, device: torch.device, split: str, checkpoints: bool
) -> tuple[nn.Module, WeightStore | None]:
    """Return a stage on its device as it will be run, and its weight store if `split` is `store`, else None.

    With `checkpoints` its layers are recomputed in the backward.
    """
    module = with_checkpoints(stage) if checkpoints else stage
    module = module.to(device)
    return module, store_weight_gradients(module) if split == "store" else None
