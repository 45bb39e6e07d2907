"""Tensors between stages: sent and received in the order of the proof, or handed over on their rank.

A rank posts its sends and receives at their places in its program, in which both ends of every transfer have one order:
it ends even if all of them run one at a time, as on one communicator of NCCL. A sent tensor is kept until a tensor that
the same peer sent later has arrived, which says that it was received; so memory is freed at the same passes in every
iteration, and no wait takes time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.distributed as dist

# The pass that yields a tensor: F or B, its stage and micro-batch; and which of its tensors, if it yields several.
Name: TypeAlias = tuple[Any, ...]


class Transfers:
    """Transfers of one rank in one iteration; `empty` makes the tensor to receive into, for a name."""

    def __init__(self, group: Any, empty: Callable[[Name], torch.Tensor]) -> None:
        self._group, self._empty = group, empty
        self._here: dict[Name, torch.Tensor] = {}
        self._coming: dict[Name, tuple[torch.Tensor, Any, int, int]] = {}
        self._leaving: dict[int, list[Any]] = {}

    def hand_over(self, name: Name, tensor: torch.Tensor) -> None:
        """The stage that uses it is on this rank."""
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
        """The tensor, once it is here."""
        if name in self._here:
            return self._here.pop(name)
        tensor, work, peer, sent = self._coming.pop(name)
        work.wait()
        self._wait_for(peer, sent)
        return tensor

    def _wait_for(self, peer: int, sent: int) -> None:
        """Lets go of the first sends to a peer. Their places stay, since receives count them."""
        leaving = self._leaving.get(peer, [])
        for at in range(sent - 1, -1, -1):
            if leaving[at] is None:
                break
            leaving[at][0].wait()
            leaving[at] = None

    def finish(self) -> None:
        """Everything has left."""
        for peer, leaving in self._leaving.items():
            self._wait_for(peer, len(leaving))
