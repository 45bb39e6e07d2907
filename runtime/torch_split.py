"""Splits a backward by hand: linear layers that put their weight gradients aside, to be computed in a later W pass.

PyTorch's own way splits through autograd and keeps the whole graph alive until W. Here B computes the gradient of the
input at once and leaves behind only what the weights' gradients need: a linear layer's input and output gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Todo = Callable[[], None]


class WeightStore:
    """The weight gradients that a stage's backwards have put aside.

    Called, as PyTorch's `PipelineStage(dw_builder=...)` calls it after each backward, it hands out all it holds as one
    closure: the W pass of that micro-batch.
    """

    def __init__(self) -> None:
        self._held: list[Todo] = []

    def put(self, todo: Todo) -> None:
        self._held.append(todo)

    def __call__(self) -> Todo:
        held, self._held = self._held, []

        def weight_pass() -> None:
            for todo in held:
                todo()

        return weight_pass


def add_gradient(parameter: Tensor, gradient: Tensor) -> None:
    """What autograd would have done: set or add."""
    if parameter.requires_grad:
        parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)


class _Split(torch.autograd.Function):
    """`linear(x, weight, bias)` whose backward returns the gradient of x and puts the others aside."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, store: WeightStore) -> Tensor:
        ctx.save_for_backward(x)
        # Kept, not saved: under activation checkpointing a saved weight comes back as a copy of the parameter.
        ctx.weight, ctx.bias, ctx.store = weight, bias, store
        return nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, None, None, None]:
        (gradient,) = gradients
        (x,) = ctx.saved_tensors
        weight, bias = ctx.weight, ctx.bias

        def todo() -> None:
            with torch.no_grad():
                rows = gradient.reshape(-1, gradient.shape[-1])
                add_gradient(weight, rows.T @ x.reshape(-1, x.shape[-1]))
                if bias is not None:
                    add_gradient(bias, rows.sum(0))

        ctx.store.put(todo)
        return gradient @ weight if ctx.needs_input_grad[0] else None, None, None, None


class SplitLinear(nn.Module):
    """A linear layer with the very parameters of another one, whose weight gradients go to a store."""

    def __init__(self, linear: nn.Linear, store: WeightStore) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self._store = store

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = _Split.apply(x, self.weight, self.bias, self._store)  # type: ignore[no-untyped-call]
        return result


def store_weight_gradients(stage: nn.Module, store: WeightStore | None = None) -> WeightStore:
    """Replace every `nn.Linear` below `stage` by a `SplitLinear`, in place; what else has weights stays in B.

    Names and parameters stay the same. A stage that is itself an `nn.Linear` cannot be replaced from inside: wrap it
    in `nn.Sequential`. Hooks of data parallelism do not see gradients that a store computes.
    """
    store = store or WeightStore()
    for module in list(stage.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear:
                setattr(module, name, SplitLinear(child, store))
    return store
