"""Transfers of tensors between stages: sent and received in the order that was proved, or handed over within a rank.

A rank posts its sends and receives at their places in its program, in which both ends of every transfer have one order:
so the program ends even if all of them run one at a time, as on one communicator of NCCL. A sent tensor is kept until a
later transfer in the other direction, from the peer that it was sent to, has arrived: since both ends have one order,
the peer has then received it. So memory is freed at the same passes in every iteration. To free it takes no wait except
for the tensors still kept at the end of the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

# The pass that yields a tensor: F or B, its stage and micro-batch; and which of its tensors, if it yields several.
Name: TypeAlias = tuple[Any, ...]


class Transfers:
    """The sends and receives of one rank in one iteration, by name of the tensor.

    `send` and `receive` post a transfer with rank `peer` of the process group `group`, and do not wait. `take` returns
    a tensor once it has arrived, or one that another stage of this rank left by `hand_over`. `finish` waits until all
    has been sent. `empty(name)` makes the tensor into which the tensor of that name is received.
    """

    def __init__(self, group: Any, empty: Callable[[Name], torch.Tensor]) -> None:
        self._group, self._empty = group, empty
        self._here: dict[Name, torch.Tensor] = {}
        self._coming: dict[Name, tuple[torch.Tensor, Any, int, int]] = {}
        self._leaving: dict[int, list[Any]] = {}

    def hand_over(self, name: Name, tensor: torch.Tensor) -> None:
        """Store a tensor for another stage on this rank, which `take` then returns without a transfer."""
        self._here[name] = tensor

    def send(self, peer: int, tensor: torch.Tensor) -> None:
        tensor = tensor.contiguous()
        work = dist.isend(tensor, dist.get_global_rank(self._group, peer), group=self._group)
        self._leaving.setdefault(peer, []).append((work, tensor))

    def receive(self, peer: int, name: Name) -> None:
        tensor = self._empty(name)
        work = dist.irecv(tensor, dist.get_global_rank(self._group, peer), group=self._group)
        self._coming[name] = tensor, work, peer, len(self._leaving.get(peer, ()))

    def take(self, name: Name) -> torch.Tensor:
        """Return the tensor of this name and forget it; wait for it to arrive if another rank sends it.

        `KeyError` if it was neither handed over nor posted by `receive`, or has been taken.
        """
        if name in self._here:
            return self._here.pop(name)
        tensor, work, peer, sent = self._coming.pop(name)
        work.wait()
        self._wait_for(peer, sent)
        return tensor

    def _wait_for(self, peer: int, sent: int) -> None:
        """Wait until the first `sent` tensors sent to a peer have left, and release them.

        Their entries in the list become None and are not removed, since `receive` counts entries.
        """
        leaving = self._leaving.get(peer, [])
        for at in range(sent - 1, -1, -1):
            if leaving[at] is None:
                break
            leaving[at][0].wait()
            leaving[at] = None

    def finish(self) -> None:
        """Wait until every tensor of the iteration has been sent, and release those still kept.

        To be called once, after the last send of the iteration.
        """
        for peer, leaving in self._leaving.items():
            self._wait_for(peer, len(leaving))
