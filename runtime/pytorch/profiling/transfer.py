"""Measurement of transfer times: between two processes on CPU, or between two GPUs."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from pipesched.errors import BadInput
from runtime.profiling.profile import Samples

NO_LINK = "found no second GPU, so there is no transfer to measure; allowed: --transfer MS, its time in milliseconds"


def between_processes(like: Sequence[Tensor], warm_up: int, repetitions: int) -> list[Samples]:
    """Measure transfers between ranks 0 and 1 of the process group, which both call this.

    The time of a transfer is half of a round trip, which needs one clock only. For each tensor of `like`, a tensor of
    its shape is sent `repetitions` times after `warm_up` times; the result has the samples of each.
    """
    found = []
    for tensor in like:
        buffer, rank = torch.zeros_like(tensor), dist.get_rank()
        seconds = []
        for _ in range(warm_up + repetitions):
            start = time.perf_counter()
            for sender in (0, 1):
                if rank == sender:
                    dist.send(buffer, 1 - rank)
                else:
                    dist.recv(buffer, 1 - rank)
            seconds.append((time.perf_counter() - start) / 2)
        found.append(Samples(tuple(seconds[warm_up:])))
    return found


def check_link(device: torch.device) -> None:
    """Raise `BadInput` if `device` is a GPU and this machine has no second one to copy to."""
    if device.type == "cuda" and torch.cuda.device_count() < 2:
        raise BadInput(NO_LINK)


def between_gpus(like: Sequence[Tensor], warm_up: int, repetitions: int) -> list[Samples]:
    """Measure copies from the first GPU to the second, timed by events on the first.

    They are peer copies if the two have a link. For each tensor of `like`, a tensor of its shape is copied
    `repetitions` times after `warm_up` times; the result has the samples of each, in seconds.
    """
    found = []
    for tensor in like:
        source = torch.zeros_like(tensor, device="cuda:0")
        target = torch.zeros_like(tensor, device="cuda:1")
        seconds = []
        for _ in range(warm_up + repetitions):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record(torch.cuda.current_stream(0))
            target.copy_(source, non_blocking=True)
            end.record(torch.cuda.current_stream(0))
            torch.cuda.synchronize(0)
            torch.cuda.synchronize(1)
            seconds.append(start.elapsed_time(end) / 1000)
        found.append(Samples(tuple(seconds[warm_up:])))
    return found
