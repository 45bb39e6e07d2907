"""Values sent between stages (a tensor, tuple or dict), and the flat form in which PyTorch sends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from pipesched.errors import BadInput


class Boundary(NamedTuple):
    """The input or output of a stage: the structure of its tensors, and an empty tensor like each of them.

    The empty tensors require a gradient where the model's own tensors do. `spec` is the structure, `like` the empty
    tensors.
    """

    spec: TreeSpec
    like: tuple[Tensor, ...]


def boundary_of(value: Any, what: str) -> Boundary:
    """Return the boundary of a value; `BadInput` if it contains something that is no tensor, or nothing.

    `what` names the value in the message.
    """
    leaves, spec = tensors_of(value, what)
    return Boundary(spec, tuple(torch.empty_like(one).requires_grad_(one.requires_grad) for one in leaves))


def tensors_of(value: Any, what: str) -> tuple[list[Tensor], TreeSpec]:
    """Return the tensors of a value in order, and their structure; `BadInput` if it has none, or something else.

    `what` names the value in the message.
    """
    leaves, spec = tree_flatten(value)
    wrong = next((one for one in leaves if not isinstance(one, Tensor)), None)
    if wrong is not None or not leaves:
        raise BadInput(
            f"--model: {what} holds a {type(wrong).__name__}; allowed: a tensor, or a tuple or dict of tensors"
        )
    return leaves, spec


def call(stage: nn.Module, value: Any) -> Any:
    """Return the output of a stage on a value: a dict is passed by keyword, a tuple or list by position."""
    if isinstance(value, dict):
        return stage(**value)
    return stage(*value) if isinstance(value, tuple | list) else stage(value)


class FlatStage(nn.Module):
    """A stage as PyTorch's runtime expects it: tensors in by position, a tuple of tensors out.

    `takes` is the structure in which `stage` expects its input. An output that is a view, or a leaf of the autograd
    graph such as an input, is copied, since autograd's split detaches outputs in place.
    """

    def __init__(self, stage: nn.Module, takes: TreeSpec) -> None:
        super().__init__()
        self.stage, self._takes = stage, takes

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        leaves, _ = tree_flatten(call(self.stage, tree_unflatten(tensors, self._takes)))
        return tuple(one.clone() if one._is_view() or one.is_leaf else one for one in leaves)


def loss_of_tensors(loss: Callable[[Any, Any], Tensor], gives: TreeSpec) -> Callable[[Sequence[Tensor], Any], Tensor]:
    """Return the loss as a function of the last stage's tensors.

    `gives` is the structure in which `loss` expects them.
    """
    return lambda output, target: loss(tree_unflatten(output, gives), target)


def to_device(value: Any, device: torch.device) -> Any:
    """Return a value with its tensors on a device; entries that are no tensors stay as they are."""
    leaves, spec = tree_flatten(value)
    return tree_unflatten([one.to(device) if isinstance(one, Tensor) else one for one in leaves], spec)
