"""Micro-batches run through a chain of stages spread over processes, one stage after the other, without a schedule.

The reference and the shapes of messages are computed in this manner. Nothing of PyTorch's pipeline runtime is used: a
process runs a stage when the result of the stage before has arrived. All processes go through chains and micro-batches
in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_map

from pipesched.problem.placement import Placement
from pipesched.problem.quantities import DeviceId, StageId


class ChainWalk:
    """One chain of a placement, as process `rank` sees it; every process with a part of the chain must take part.

    `chain` are its stages in forward order, by the placement's numbers; tensors that arrive are moved to `device`.
    """

    def __init__(self, where: Placement, chain: Sequence[StageId], rank: DeviceId, device: torch.device) -> None:
        self._device_of, self._chain = where.stage_device, chain
        self._rank, self._device = rank, device

    @property
    def first_is_here(self) -> bool:
        return self._device_of[self._chain[0]] == self._rank

    def forward(self, start: Any, run: Callable[[StageId, Any], Any]) -> None:
        """Call `run(stage, value)` for each stage of this process, in the order of the chain, as for one micro-batch.

        For the first stage of the chain `value` is `start`. For any other it is the result of `run` for the stage
        before it in the chain, received if another process has that stage, with its tensors detached. Results may be
        tensors, nested lists and dictionaries of tensors, or other objects that can be sent.
        """
        self._walk(self._chain, start, run)

    def backward(self, run: Callable[[StageId, Any], Any]) -> None:
        """Call `run(stage, value)` for each stage of this process, from the end of the chain, as for one micro-batch.

        For the last stage of the chain `value` is None. For any other it is the result of `run` for the stage after it
        in the chain, received if another process has that stage, with its tensors detached. Results may be tensors,
        nested lists and dictionaries of tensors, or other objects that can be sent.
        """
        self._walk(tuple(reversed(self._chain)), None, run)

    def _walk(self, stages: Sequence[StageId], start: Any, run: Callable[[StageId, Any], Any]) -> None:
        value = start
        for at, stage in enumerate(stages):
            if self._device_of[stage] != self._rank:
                continue
            if at and self._device_of[stages[at - 1]] != self._rank:
                value = self._receive(self._device_of[stages[at - 1]])
            value = _moved(run(stage, value), self._device)
            if at + 1 < len(stages) and self._device_of[stages[at + 1]] != self._rank:
                dist.send_object_list([_moved(value, torch.device("cpu"))], self._device_of[stages[at + 1]])

    def _receive(self, source: DeviceId) -> Any:
        box: list[Any] = [None]
        dist.recv_object_list(box, source)
        return _moved(box[0], self._device)


def _moved(value: Any, device: torch.device) -> Any:
    """Return a value with its tensors detached and moved to a device, still requiring a gradient if they did."""

    def move(one: Any) -> Any:
        return one.detach().to(device).requires_grad_(one.requires_grad) if isinstance(one, Tensor) else one

    return tree_map(move, value)
