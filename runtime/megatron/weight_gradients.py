"""Weight gradients that B leaves to W: queued for Megatron's own linear layers, `backward_dw` for Transformer Engine's.

Transformer Engine computes those of the earliest B of the chunk first; the exporter numbers W passes accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import layers

from runtime.megatron.transformer_engine import delayed_modules

# Computes one weight gradient, and adds it to the parameter.
Later: TypeAlias = Callable[[], None]

# Weight gradients left by the backward that runs now; None outside of one. Autograd never runs two at a time.
_RUNNING: list[list[Later] | None] = [None]


class WeightGradients:
    """Deferred weight gradients of one rank's chunks; `split` is True if the schedule has W passes.

    An argument `chunk` is an index in `chunks`, from 0.
    """

    def __init__(self, chunks: list[Any], split: bool) -> None:
        self._waiting: dict[tuple[int, int], list[Later]] = {}
        self._engine = [delayed_modules(chunk.modules(), split) for chunk in chunks]

    @contextmanager
    def put_aside(self, chunk: int, microbatch: int) -> Iterator[None]:
        """Context in which a backward defers the weight gradients of linear layers.

        `compute` of this chunk and micro-batch computes them.
        """
        left: list[Later] = []
        _RUNNING[0] = left
        try:
            yield
        finally:
            _RUNNING[0] = None
        self._waiting[chunk, microbatch] = left

    def compute(self, chunk: int, microbatch: int) -> None:
        """Compute the weight gradients that a backward of this chunk and micro-batch deferred.

        Of Transformer Engine's layers it computes those of the chunk's earliest backward that still waits. `KeyError`
        if no backward of this chunk and micro-batch waits.
        """
        for later in self._waiting.pop((chunk, microbatch)):
            later()
        for module in self._engine[chunk]:
            module.backward_dw()


def computed_in_w(chunk: Any) -> list[torch.nn.Parameter]:
    """Return the parameters whose gradients W computes, in an order that is the same on all ranks of a stage.

    Transformer Engine marks those of modules that delay weight gradients.
    """
    kinds = (layers.ColumnParallelLinear, layers.RowParallelLinear)
    found = [one.weight for one in chunk.modules() if isinstance(one, kinds)]
    found += [one for one in chunk.parameters() if getattr(one, "skip_backward_post_hook", False)]
    return list(dict.fromkeys(one for one in found if one is not None and one.requires_grad))


def split_linears() -> None:
    """Replace forward and backward of Megatron's linear function, so that it defers its weight gradient in `put_aside`.

    It is still computed at once where the weight is no parameter of its own, and with sequence parallelism. To be
    called once in a process.
    """
    function = layers.LinearWithGradAccumulationAndAsyncCommunication
    forward, backward = function.forward, function.backward

    def remembering(ctx: Any, x: Any, weight: Any, *more: Any) -> Any:
        # Under saved-tensor hooks, as of offloading, the saved weight is a copy.
        ctx.own_weight = weight
        return forward(ctx, x, weight, *more)

    def split(ctx: Any, grad_output: Any) -> Any:
        left = _RUNNING[0]
        # What is no parameter has a backward of its own, and another gradient is not the end of it.
        if left is None or not isinstance(ctx.own_weight, torch.nn.Parameter) or ctx.sequence_parallel:
            return backward(ctx, grad_output)
        x, handle = ctx.saved_tensors[0], None
        grad_x = grad_output.matmul(ctx.own_weight)
        if ctx.allreduce_dgrad:
            handle = dist.all_reduce(grad_x, group=ctx.tp_group, async_op=True)
        weight, fused = ctx.own_weight, ctx.gradient_accumulation_fusion
        left.append(lambda: _add_gradient(weight, grad_output, x, fused))
        bias = grad_output.sum(dim=tuple(range(grad_output.dim() - 1))) if ctx.use_bias else None
        if handle is not None:
            handle.wait()
        return grad_x, None, bias, *[None] * (len(ctx.needs_input_grad) - 3)

    function.forward, function.backward = staticmethod(remembering), staticmethod(split)


@torch.no_grad()
def _add_gradient(weight: Any, grad_output: Any, x: Any, fused: bool) -> None:
    """Compute and add a weight gradient as Megatron's function, autograd and the data parallel hook would.

    With `fused`, Megatron's kernel adds it to `main_grad` as it multiplies. It is reduced at the end of the chunk.
    """
    grad_output, x = layers.prepare_input_tensors_for_wgrad_compute(grad_output, x)
    if fused:
        whole = weight.main_grad.dtype == torch.float32
        kernels = layers.fused_weight_gradient_mlp_cuda
        add = kernels.wgrad_gemm_accum_fp32 if whole else kernels.wgrad_gemm_accum_fp16
        add(x, grad_output, weight.main_grad)
        return
    gradient = grad_output.t().matmul(x)
    if hasattr(weight, "main_grad"):
        weight.main_grad.add_(gradient)
    else:
        weight.grad = gradient if weight.grad is None else weight.grad.add_(gradient)
