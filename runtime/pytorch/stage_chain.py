"""Micro-batches run through a chain of stages spread over processes, one stage after the other, without a schedule.

It computes the reference and the shapes of messages. It uses nothing of PyTorch's pipeline runtime: each process runs
its stages when the stage before has handed over, and every process goes through chains and micro-batches alike.
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
    """One chain of a placement, as process `rank` sees it; every process with a part of the chain must take part."""

    def __init__(self, where: Placement, chain: Sequence[int], rank: int, device: torch.device) -> None:
        self._device_of, self._chain = where.stage_device, chain
        self._rank, self._device = rank, device

    @property
    def first_is_here(self) -> bool:
        return self._device_of[self._chain[0]] == self._rank

    def forward(self, start: Any, run: Callable[[StageId, Any], Any]) -> None:
        """Call `run(stage, value)` for each stage here, in the order of the chain.

        `start` is the first stage's value; each result is the next one's, sent to its process if need be.
        """
        self._walk(self._chain, start, run)

    def backward(self, run: Callable[[StageId, Any], Any]) -> None:
        """Call `run(stage, value)` for each stage here, from the last of the chain to the first.

        The last stage's value is None; each result is the value of the stage before it, sent to its process if need be.
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
