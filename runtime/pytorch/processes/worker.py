"""A worker process of a run: executes its device's part of every job and compares it with the reference."""

from __future__ import annotations

import os
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_flatten

from pipesched.errors import BadInput
from runtime.execution.program import Program
from runtime.pytorch.gradient_check import StepResult, compare_step, take_gradients
from runtime.pytorch.passes.boundary import loss_of_tensors, to_device
from runtime.pytorch.processes.outcome import Ran, outcome_of
from runtime.pytorch.program_executor import ProgramExecutor
from runtime.pytorch.reference import reference
from runtime.pytorch.runtime import runtime_of
from runtime.pytorch.stages import RankStages, hold
from runtime.pytorch.tracer import Tracer
from runtime.pytorch.user_code import described
from runtime.running.heartbeat import BUILDS, FAILED, REFERENCE, Heartbeat, end_when_stalled, who_waits
from runtime.running.job import Job, Outcome

# A step's losses by micro-batch, of its inputs and targets by micro-batch.
_Execute = Callable[[Mapping[int, Any], Mapping[int, Any]], dict[int, float]]
# For messages between processes: a run that stalls is ended by whoever watches it, much earlier.
_NO_LIMIT = timedelta(days=7)


class Worker:
    """A process with its place in the group of a run's processes.

    `rank` of `world` is its rank, the device of the schedule that it runs. `run` runs a job, and returns its outcome on
    rank 0.
    """

    def __init__(self, heartbeat: Heartbeat, device: torch.device) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self._heartbeat, self._device = heartbeat, device

    def run(self, job: Job) -> Outcome | None:
        """Run all steps of a job, which every rank must do; returns the outcome on rank 0, None elsewhere.

        `BadInput` if the model cannot be built or its tensors sent.
        """
        self._heartbeat.tell(BUILDS)
        local = hold(job, self.rank, self._device)
        ran = Ran(socket.gethostname(), tuple(local.draws.stages))
        try:
            steps = self._prepare(job, local)
        except (ValueError, RuntimeError, AssertionError, KeyError, IndexError) as error:
            # Every rank loads the same rows, so every rank gets here or none.
            ran.refused = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        else:
            for result, times in steps:
                ran.results += [] if result is None else [result]
                ran.times.append(times)
        self._heartbeat.tell("waits for the others to finish")
        everyone: list[Any] | None = [None] * self.world if self.rank == 0 else None
        dist.gather_object(ran, everyone)
        return None if everyone is None else outcome_of(job, everyone, self._device)

    def _prepare(self, job: Job, local: RankStages) -> Iterator[tuple[StepResult | None, Any]]:
        """Load a job.

        Return an iterator that runs its steps and gives of each the comparison (or None) and measured times. Loading is
        done, and its errors are raised, before the first message: a refused job leaves the process group in order.
        """
        number_of = {label: j for j, label in enumerate(job.labels)}
        microbatch_of = number_of.__getitem__ if job.rows is not None else int
        tracer = Tracer(self._device, self._heartbeat, microbatch_of)
        if job.program is not None:
            return self._steps(job, local, tracer, self._program(job.program, job, local, tracer))
        for number, stage in local.stages.items():
            tracer.watch(stage, number, local.modules[number])
        return self._steps(job, local, tracer, self._torch(job, local, tracer))

    def _steps(
        self, job: Job, local: RankStages, tracer: Tracer, execute: _Execute
    ) -> Iterator[tuple[StepResult | None, Any]]:
        where, microbatches = job.problem.placement, job.problem.microbatches
        position = {s: at for chain in where.chains for at, s in enumerate(chain)}
        for step in range(job.steps):
            take_gradients(local.modules)
            inputs, targets = self._data(job, local, step)
            self._heartbeat.tell("waits for the others to start a step")
            dist.barrier()
            tracer.begin(partial(_seed, local, position, step * microbatches))
            losses = execute(inputs, targets)
            times = tracer.finish()
            result = None
            if step < job.compared:
                ran = take_gradients(local.modules)
                self._heartbeat.tell(REFERENCE)
                right = reference(job, local, self.rank, self._device, step, lambda: self._heartbeat.tell(REFERENCE))
                result = compare_step(step, microbatches, position, losses, ran, right)
            yield result, times

    def _data(self, job: Job, local: RankStages, step: int) -> tuple[dict[int, Any], dict[int, Any]]:
        """Return a step's inputs and its targets, on the device, by micro-batch of the step.

        Each is empty if no stage of this process takes them.
        """
        where, first = job.problem.placement, step * job.problem.microbatches
        ends = [(chain[0] in local.stages, chain[-1] in local.stages) for chain in where.chains]
        numbers = range(job.problem.microbatches)
        inputs = {j: to_device(local.model.inputs(first + j), self._device) for j in numbers if any(a for a, _ in ends)}
        targets = {
            j: to_device(local.model.targets(first + j), self._device) for j in numbers if any(b for _, b in ends)
        }
        return inputs, targets

    def _torch(self, job: Job, local: RankStages, tracer: Tracer) -> _Execute:
        """Return a function that executes a step with PyTorch's own runtime, from the exported text."""
        mine = [local.stages[number] for number in sorted(local.stages)]
        first, last = 0 in local.stages, job.depth - 1 in local.stages
        by_label = sorted(range(job.problem.microbatches), key=job.labels.__getitem__)
        goals: dict[int, Any] = {}

        def loss(output: Any, label: Tensor) -> Tensor:
            of_tensors = loss_of_tensors(local.model.loss, local.gives[job.depth - 1].spec)
            return of_tensors(output, goals[by_label[int(label)]])

        runtime = runtime_of(job, mine, tracer.with_loss(loss))

        def execute(inputs: Mapping[int, Any], targets: Mapping[int, Any]) -> dict[int, float]:
            goals.update(targets)
            leaves = [tree_flatten(inputs[j])[0] for j in by_label] if first else []
            args = [torch.cat(alike) for alike in zip(*leaves, strict=True)]
            # The runtime cuts a target into micro-batches: it gets their labels, so that targets may be anything.
            labels = torch.arange(job.problem.microbatches) if last else None
            losses: list[Tensor] = []
            runtime.step(*args, target=labels, losses=losses if last else None, return_outputs=False)
            return {j: value.item() for j, value in zip(by_label, losses, strict=True)} if last else {}

        return execute

    def _program(self, program: Program, job: Job, local: RankStages, tracer: Tracer) -> _Execute:
        if self._device.type != "cpu" and len(job.problem.placement.chains) > 1:
            raise BadInput("this placement runs on CPU only in this version; allowed: --device cpu")
        return ProgramExecutor(job.problem, program, local, _loss(job, local), watch=tracer.run).step


def _loss(job: Job, local: RankStages) -> Callable[[Any, Any], Tensor]:
    """Return the loss as a function of the last stage's output tensors.

    The model's loss itself if no last stage is here.
    """
    lasts = [chain[-1] for chain in job.problem.placement.chains if chain[-1] in local.stages]
    return loss_of_tensors(local.model.loss, local.gives[lasts[0]].spec) if lasts else local.model.loss


def _seed(local: RankStages, position: Mapping[int, int], first: int, stage: int, microbatch: int) -> None:
    local.draws.seed(position[stage], stage, first + microbatch)


def join(device: str, store: str | None = None) -> torch.device:
    """Join the process group named by RANK and WORLD_SIZE; return the torch device of this process.

    `device` is `cpu`, `cuda` or `auto`: GPUs, with NCCL, if every process here has one of its own. `store` is the
    address where processes find each other (default: torchrun's variables). Also sets the number of CPU threads.
    """
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
    dist.init_process_group(backend, init_method=store or "env://", rank=rank, world_size=world, timeout=_NO_LIMIT)
    return where


def run_under_torchrun(jobs: Sequence[Job], device: str, timeout: float) -> list[Outcome] | None:
    """Run jobs as the rank given by the environment; return the outcomes, in order, on rank 0, None elsewhere.

    The process ends itself if it has not moved on within a step for `timeout` seconds. `device` is `cpu`, `cuda` or
    `auto`, which is GPUs if every process has one.
    """
    heartbeat = Heartbeat()
    rank = int(os.environ["RANK"])
    end_when_stalled(heartbeat, timeout, lambda state: who_waits(jobs, [state], [rank]))
    worker = Worker(heartbeat, join(device))
    outcomes = []
    for number, job in enumerate(jobs):
        heartbeat.job = number
        outcomes.append(worker.run(job))
    heartbeat.tell("has finished")
    dist.destroy_process_group()
    return [one for one in outcomes if one is not None] if rank == 0 else None


def main(folder: Path, rank: int, world: int) -> None:
    """Run as process `rank` of `world` of the supervisor: reads jobs from the `folder`, and writes its state to it.

    Rank 0 also writes the outcomes. After an error the process writes `failed.RANK` and ends with code 1.
    """
    own = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
    os.environ.update({key: str(value) for key, value in own.items()})
    heartbeat = Heartbeat(folder / f"state.{rank}")
    order = pickle.loads((folder / "jobs").read_bytes())
    try:
        heartbeat.tell("joins the others")
        worker = Worker(heartbeat, join(order["device"], f"file://{folder / 'store'}"))
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
        failed = {"bad_input": mistakes, "text": described(error)}
        (folder / f"part.{rank}").write_bytes(pickle.dumps(failed))
        (folder / f"part.{rank}").rename(folder / f"failed.{rank}")
        os._exit(1)  # a peer may be waiting for a message that will never come: no orderly way out
