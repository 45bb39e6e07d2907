"""One process of a run: executes its device's part of every job; rank 0 compares all of it with the reference."""

from __future__ import annotations

import os
import pickle
import socket
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

from pipesched.errors import BadInput
from runtime.torch_bidirectional import Executor
from runtime.torch_job import Job, Outcome
from runtime.torch_outcome import Ran, outcome_of
from runtime.torch_reference import StepResult, gradients_of
from runtime.torch_stages import Held, hold
from runtime.torch_status import FAILED, Heartbeat, end_when_stalled, who_waits
from runtime.torch_trace import Tracer


class Worker:
    """This process's place in the group, and the jobs it runs."""

    def __init__(self, heartbeat: Heartbeat, device: torch.device) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self._heartbeat, self._device = heartbeat, device

    def run(self, job: Job) -> Outcome | None:
        """All steps of a job; the outcome on rank 0."""
        self._heartbeat.tell("builds its model")
        ran = Ran(socket.gethostname())
        held = hold(job, self.rank, self._device)
        try:
            steps = self._prepare(job, held)
        except (ValueError, RuntimeError, AssertionError, KeyError, IndexError) as error:
            # Every rank loads the same rows, so every rank gets here or none.
            ran.refused = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        else:
            for result, times in steps:
                ran.results += [result] if len(ran.results) < job.compared else []
                ran.times.append(times)
        self._heartbeat.tell("waits for the others to finish")
        everyone: list[Any] | None = [None] * self.world if self.rank == 0 else None
        dist.gather_object(ran, everyone)
        return None if everyone is None else outcome_of(job, everyone, self._device)

    def _prepare(self, job: Job, held: Held) -> Iterator[tuple[StepResult, Any]]:
        """Load before the first message, so that what is refused leaves the group in order."""
        number_of = {label: j for j, label in enumerate(job.labels)}
        tracer = Tracer(self._device, self._heartbeat, number_of.__getitem__ if job.rows is not None else int)
        for number, stage in held.stages.items():
            tracer.watch(stage, number, held.modules[number])
        execute = self._torch(job, held, tracer) if job.rows is not None else self._own(job, held, tracer)
        return self._steps(job, held, tracer, execute)

    def _steps(self, job: Job, held: Held, tracer: Tracer, execute: Any) -> Iterator[tuple[StepResult, Any]]:
        where = job.problem.placement
        position = {s: at for chain in where.chains for at, s in enumerate(chain)}
        for step in range(job.steps):
            for module in held.modules.values():
                module.zero_grad(set_to_none=True)
            data = range(step * job.problem.microbatches, (step + 1) * job.problem.microbatches)
            inputs = {j: held.model.inputs(n).to(self._device) for j, n in enumerate(data)}
            targets = {j: held.model.targets(n).to(self._device) for j, n in enumerate(data)}
            self._heartbeat.tell("waits for the others to start a step")
            dist.barrier()
            tracer.begin()
            losses = execute(inputs, targets)
            times = tracer.finish()
            gradients: dict[tuple[int, str], Tensor | None] = {}
            if step < job.compared:
                for number, module in held.modules.items():
                    gradients |= gradients_of({position[number]: module})
            yield StepResult(losses, gradients), times

    def _torch(self, job: Job, held: Held, tracer: Tracer) -> Any:
        """PyTorch's own runtime, with the exported text."""
        assert job.rows is not None
        mine = [held.stages[number] for number in sorted(held.stages)]
        loss = tracer.with_loss(held.model.loss)
        runtime = _PipelineScheduleRuntime(  # type: ignore[no-untyped-call]
            mine, job.problem.microbatches, loss_fn=loss, scale_grads=True
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "schedule.csv"
            path.write_text(job.rows)
            runtime._load_csv(str(path), format="compute_comms" if job.comms else "compute_only")
        by_label = sorted(range(job.problem.microbatches), key=job.labels.__getitem__)

        def execute(inputs: Mapping[int, Tensor], targets: Mapping[int, Tensor]) -> dict[int, float]:
            first, last = 0 in held.stages, job.depth - 1 in held.stages
            args = (torch.cat([inputs[j] for j in by_label]),) if first else ()
            target = torch.cat([targets[j] for j in by_label]) if last else None
            losses: list[Tensor] = []
            runtime.step(*args, target=target, losses=losses if last else None, return_outputs=False)
            return {j: value.item() for j, value in zip(by_label, losses, strict=True)} if last else {}

        return execute

    def _own(self, job: Job, held: Held, tracer: Tracer) -> Any:
        if self._device.type != "cpu":
            raise BadInput("this placement runs on CPU only in this version; allowed: --device cpu")

        def buffers(number: int) -> tuple[Tensor, Tensor]:
            like_input, like_output = held.shapes[number]
            return torch.empty_like(like_input), torch.empty_like(like_output)

        loss = tracer.with_loss(held.model.loss)
        return Executor(job.problem, job.schedule, self.rank, held.stages, buffers, loss).step


def join(device: str, timeout: float, store: str | None = None) -> torch.device:
    """Join the process group that RANK and WORLD_SIZE name; NCCL where every process here has a GPU of its own."""
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() and torch.cuda.device_count() >= here else "cpu"
    where = torch.device("cpu")
    if device == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)))
        torch.cuda.set_device(where)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // here))
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(
        backend, init_method=store or "env://", rank=rank, world_size=world, timeout=timedelta(seconds=timeout)
    )
    return where


def run_under_torchrun(jobs: Sequence[Job], device: str, timeout: float) -> list[Outcome] | None:
    """This process as the rank that its environment says; the outcomes on rank 0."""
    heartbeat = Heartbeat()
    rank = int(os.environ["RANK"])
    end_when_stalled(heartbeat, timeout, lambda state: who_waits(jobs, [state], [rank]))
    worker = Worker(heartbeat, join(device, 4 * timeout + 60))
    outcomes = []
    for number, job in enumerate(jobs):
        heartbeat.job = number
        outcomes.append(worker.run(job))
    heartbeat.tell("has finished")
    dist.destroy_process_group()
    return [one for one in outcomes if one is not None] if rank == 0 else None


def main(folder: Path, rank: int, world: int) -> None:
    """A process that the supervisor started: jobs from its folder, state and outcomes into it."""
    own = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
    os.environ.update({key: str(value) for key, value in own.items()})
    heartbeat = Heartbeat(folder / f"state.{rank}")
    order = pickle.loads((folder / "jobs").read_bytes())
    try:
        heartbeat.tell("joins the others")
        worker = Worker(heartbeat, join(order["device"], 4 * order["timeout"] + 60, f"file://{folder / 'store'}"))
        outcomes = []
        for number, job in enumerate(order["jobs"]):
            heartbeat.job = number
            outcomes.append(worker.run(job))
        heartbeat.tell("waits for the others to end")
        dist.barrier()
        if rank == 0:
            (folder / "outcomes.part").write_bytes(pickle.dumps(outcomes))
            (folder / "outcomes.part").rename(folder / "outcomes")
        heartbeat.tell("has finished")
        dist.destroy_process_group()
    except BaseException as error:
        heartbeat.tell(FAILED)
        traceback.print_exc()
        mistakes = error.mistakes if isinstance(error, BadInput) else None
        failed = {"bad_input": mistakes, "text": _root(error)}
        (folder / f"part.{rank}").write_bytes(pickle.dumps(failed))
        (folder / f"part.{rank}").rename(folder / f"failed.{rank}")
        os._exit(1)  # a peer may be waiting for a message that will never come: no orderly way out


def _root(error: BaseException) -> str:
    """The error that was there first, in a line; torch wraps what a stage raises."""
    while error.__cause__ is not None:
        error = error.__cause__
    said = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {said}"
