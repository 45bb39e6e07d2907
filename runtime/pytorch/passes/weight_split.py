"""Split of a backward by hand: linear layers defer their weight gradients, to be computed in a later W pass.

PyTorch itself splits through autograd and keeps the whole graph alive until W. Here B computes the gradient of the
input at once and keeps only the inputs of the weights' gradients: a linear layer's input and output gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

# Computes weight gradients and adds them to `grad`.
Todo = Callable[[], None]


class WeightStore:
    """A store of the weight gradients that a stage's backwards have deferred.

    `put` adds a deferred gradient. PyTorch calls the store after each backward, as `PipelineStage(dw_builder=...)`. It
    then returns one function that computes all gradients stored, the W pass of that micro-batch, and is empty again.
    """

    def __init__(self) -> None:
        self._pending: list[Todo] = []

    def put(self, todo: Todo) -> None:
        self._pending.append(todo)

    def __call__(self) -> Todo:
        pending, self._pending = self._pending, []

        def weight_pass() -> None:
            for todo in pending:
                todo()

        return weight_pass


def add_gradient(parameter: Tensor, gradient: Tensor) -> None:
    """Set a parameter's gradient or add to it, as autograd would; nothing if the parameter requires none."""
    if parameter.requires_grad:
        parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


class _Split(torch.autograd.Function):
    """`linear(x, weight, bias)` whose backward returns the gradient of x and defers the others.

    It computes in the type of its output: under autocast that is not the parameters' type.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, store: WeightStore) -> Tensor:
        result = nn.functional.linear(x, weight, bias)
        ctx.save_for_backward(x.to(result.dtype))
        # Kept, not saved: under activation checkpointing a saved weight comes back as a copy of the parameter.
        ctx.weight, ctx.bias, ctx.store, ctx.dtype = weight, bias, store, x.dtype
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, None]:
        (gradient,) = gradients
        (x,) = ctx.saved_tensors
        weight, bias = ctx.weight, ctx.bias

        def todo() -> None:
            with torch.no_grad():
                rows = gradient.reshape(-1, gradient.shape[-1])
                add_gradient(weight, (rows.T @ x.reshape(-1, x.shape[-1])).to(weight.dtype))
                if bias is not None:
                    add_gradient(bias, rows.sum(0).to(bias.dtype))

        ctx.store.put(todo)
        needed = ctx.needs_input_grad[0]
        return (gradient @ weight.to(gradient.dtype)).to(ctx.dtype) if needed else None, None, None, None


def store_weight_gradients(stage: nn.Module) -> WeightStore:
    """Make every `nn.Linear` in `stage` defer its weight gradients to a store, which is returned.

    Subclasses of it and other modules compute theirs in B. Only the layers' `forward` is replaced, in place: they keep
    their type, parameters and attributes. Hooks of data parallelism do not see gradients that a store computes.
    """
    store = WeightStore()
    for module in stage.modules():
        if type(module) is nn.Linear:
            module.forward = partial(_forward, module, store)  # type: ignore[method-assign]
    return store


def _forward(linear: nn.Linear, store: WeightStore, x: Tensor) -> Tensor:
    result: Tensor = _Split.apply(x, linear.weight, linear.bias, store)  # type: ignore[no-untyped-call]
    return result
