"""Profiling of a model cut into stages: every pass, every transfer, and their memory."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch

from pipesched.errors import BadInput
from pipesched.version import VERSION
from runtime.profiling.profile import Profile, Request, Samples, StageProfile
from runtime.pytorch.profiling.chain import Chain, bench_of, build_chain
from runtime.pytorch.profiling.processes import ProcessMeasurements, in_processes
from runtime.pytorch.profiling.stage_bench import profiled
from runtime.pytorch.profiling.transfer import between_gpus, check_link


def profile(request: Request) -> Profile:
    """Measure every stage and the transfers between them.

    On CPU each device is a process that measures its own stages while the others measure theirs, since that is how they
    will run; with more devices than processors, one process measures all. On GPU one process measures stage after
    stage. `BadInput` for what the user can change.
    """
    device = _device(request)
    chain = build_chain(request, device)  # a mistake of the user's shows here, not in another process
    found = [_alone(request, chain, device)] if device.type == "cuda" else in_processes(request)
    stages = {number: stage for one in found for number, stage in one.stages.items()}
    transfers = found[0].transfers
    if request.transfer is not None:
        transfers = [Samples((request.transfer,))] * (request.depth - 1)
    return Profile(
        request,
        tuple(stages[number] for number in range(request.depth)),
        (*transfers, Samples((0.0,))),  # after the last stage nothing is sent
        machine=_machine(device, found[0].threads),
        versions={"pipesched": VERSION, "torch": torch.__version__, "python": platform.python_version()},
    )


def _device(request: Request) -> torch.device:
    if request.device == "cuda":
        if not torch.cuda.is_available():
            raise BadInput("--device: found cuda, and no GPU that PyTorch can use; allowed here: cpu")
        device = torch.device("cuda", 0)
        if request.transfer is None and request.depth > 1:
            check_link(device)
        return device
    return torch.device("cpu")


def _alone(request: Request, chain: Chain, device: torch.device) -> ProcessMeasurements:
    """Measure all stages in this process, one after the other; on GPU also the transfers.

    Transfers are not measured where the request gives their time.
    """
    stages: dict[int, StageProfile] = {}
    for number in range(request.depth):
        bench = bench_of(request, chain, number, device)
        for one in profiled(bench, request.warm_up, request.repetitions, chain.output_bytes(number)):
            if one is not None:
                stages[number] = one
    transfers: list[Samples] = []
    if request.transfer is None and device.type == "cuda":
        transfers = between_gpus(chain.links(), request.warm_up, request.repetitions)
    return ProcessMeasurements(stages, transfers, torch.get_num_threads())


def _machine(device: torch.device, threads: int) -> dict[str, str]:
    found = {"system": f"{platform.system()} {platform.machine()}", "processors": str(os.cpu_count())}
    if device.type == "cuda":
        return found | {"device": torch.cuda.get_device_name(device), "cuda": str(torch.version.cuda)}
    return found | {"device": _processor(), "threads": str(threads)}


def _processor() -> str:
    """Return the processor's name from Linux, else from Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "cpu"
