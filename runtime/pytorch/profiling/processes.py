"""Profiling of the stages of all devices at once, with a process for each device, then of transfers between two."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessException, start_processes

from pipesched.errors import BadInput
from pipesched.problem.quantities import StageId
from runtime.profiling.profile import Request, Samples, StageProfile
from runtime.pytorch.profiling.chain import Chain, bench_of, build_chain
from runtime.pytorch.profiling.stage_bench import profiled
from runtime.pytorch.profiling.transfer import between_processes

_TIMEOUT = timedelta(seconds=600)  # for the processes to wait for each other


class ProcessMeasurements(NamedTuple):
    """Measurements of one process: its stages by number, its transfers, and the number of threads that it used.

    `transfers[s]` is that after stage s; empty if this process measured none.
    """

    stages: dict[StageId, StageProfile]
    transfers: list[Samples]
    threads: int


def in_processes(request: Request) -> list[ProcessMeasurements]:
    """Profile on CPU with a process for each device, each measuring its stages.

    At least two processes, for the transfers. With more devices than processors the first process measures all stages.
    Returns the measurements of each process; processes 0 and 1 both have the transfers. `BadInput` if one of them ends
    early.
    """
    devices = request.placement.devices
    shares: list[list[int]] = [[] for _ in range(max(2, devices))]
    if devices > (os.cpu_count() or 1):
        shares = [list(range(request.depth)), []]
    else:
        for stage in range(request.depth):
            shares[request.placement.stage_device[stage]].append(stage)
    with tempfile.TemporaryDirectory(prefix="pipesched-profile-") as name:
        folder = Path(name)
        try:
            start_processes(  # type: ignore[no-untyped-call]
                _process, (request, shares, folder), nprocs=len(shares), start_method="spawn"
            )
        except ProcessException as error:
            last = (str(error).strip().splitlines() or ["a process ended"])[-1]
            raise BadInput(f"{request.model}: could not be measured: {last}") from None
        return [pickle.loads((folder / str(rank)).read_bytes()) for rank in range(len(shares))]


def _process(rank: int, request: Request, shares: Sequence[Sequence[int]], folder: Path) -> None:
    """Run process `rank`: measure the stages `shares[rank]`, and write the results, pickled, to the folder.

    Ranks 0 and 1 also measure transfers between them, unless the request gives the transfer time.
    """
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all on this machine, whatever its name resolves to
    at_once = sum(map(bool, shares))
    torch.set_num_threads(request.threads or max(1, (os.cpu_count() or 1) // at_once))
    store = dist.FileStore(  # type: ignore[attr-defined]
        str(folder / "store"), len(shares)
    )
    dist.init_process_group("gloo", store=store, rank=rank, world_size=len(shares), timeout=_TIMEOUT)
    chain = build_chain(request, torch.device("cpu"))
    stages = _share(request, chain, shares[rank], store, at_once)
    transfers: list[Samples] = []
    dist.barrier()
    if request.transfer is None and rank < 2:
        transfers = between_processes(chain.links(), request.warm_up, request.repetitions)
    dist.barrier()
    (folder / str(rank)).write_bytes(pickle.dumps(ProcessMeasurements(stages, transfers, torch.get_num_threads())))
    dist.destroy_process_group()


def _share(
    request: Request, chain: Chain, share: Sequence[StageId], store: Any, at_once: int
) -> dict[StageId, StageProfile]:
    """Return the profiles of the stages `share` by number, measured while other processes measure theirs.

    All start together, and each keeps running passes until all `at_once` processes that have stages are done (they
    count in `store`), so that every measurement sees the same load.
    """
    stages: dict[int, StageProfile] = {}
    device = torch.device("cpu")
    benches = {number: bench_of(request, chain, number, device) for number in share}
    dist.barrier()
    for number, bench in benches.items():
        for one in profiled(bench, request.warm_up, request.repetitions, chain.output_bytes(number)):
            if one is not None:
                stages[number] = one
    if share:
        store.add("done", 1)
        while store.add("done", 0) < at_once:
            for bench in benches.values():
                bench.timed()
    return stages
