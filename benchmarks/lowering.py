"""Compares placements of sends and receives: PyTorch's own lowering against ours, on stages of exact duration.

    python -m benchmarks.lowering --write docs/results/lowering.md

PyTorch's runtime posts a send or receive and goes on. How long what is posted takes depends on what it shares a stream
with: over gloo nothing, over NCCL with batched operations one stream a pair of ranks, and on one communicator (the
default of many trainers, see pytorch#188833 and #172668) one stream a rank: there an operation begins when the one
before it has ended, and it ends when the peer's end has begun. Here a thread a stream runs the operations of gloo in
that way. Stages sleep, so more ranks than processors can be timed.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import torch
import torch.distributed as dist
from torch import multiprocessing
from torch.distributed.pipelining import schedules

from benchmarks.reporting.page import exit_code, put, table
from heuristics.catalogue import HEURISTICS
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.simulation.simulator import simulate
from runtime.pytorch.run import measured_of
from runtime.pytorch.worker import Worker, join
from runtime.running.heartbeat import Heartbeat
from runtime.running.job import Job, ModelSpec, Outcome, job_for

COMMAND = "python -m benchmarks.lowering"
HEAD = ("schedule", "operations share", "torch's lowering, ms", "ours, ms", "ours is faster by", "predicted, ms")
STREAMS = ("nothing", "a stream a pair", "a stream a rank")
_READY, _TENSOR = 1, 2  # tags


@dataclass(frozen=True)
class Case:
    """A published schedule on a placement."""

    schedule: str
    placement: str
    chunks: int | None


CASES = (Case("interleaved-1f1b", "interleaved", 2), Case("zbv", "v-shape", None))


class Posted:
    """What the runtime waits for."""

    def __init__(self) -> None:
        self.done = Event()

    def wait(self) -> None:
        self.done.wait()


class Streams:
    """Runs what is posted in threads, one for each key; a send begins once the receive has begun at the other end."""

    def __init__(self, key: Callable[[int], int]) -> None:
        self._key = key
        self._queues: dict[int, SimpleQueue[tuple[Any, Posted]]] = {}

    def post(self, operations: list[Any], desc: str | None = None) -> list[Posted]:  # noqa: ARG002
        """Stands in for PyTorch's `_batch_p2p`."""
        posted = []
        for operation in operations:
            posted.append(Posted())
            self._queue(self._key(operation.peer)).put((operation, posted[-1]))
        return posted

    def _queue(self, key: int) -> SimpleQueue[tuple[Any, Posted]]:
        if key not in self._queues:
            self._queues[key] = SimpleQueue()
            Thread(target=self._run, args=(self._queues[key],), daemon=True).start()
        return self._queues[key]

    def _run(self, queue: SimpleQueue[tuple[Any, Posted]]) -> None:
        token = torch.zeros(1)
        while True:
            operation, posted = queue.get()
            if operation.op is dist.isend:
                dist.recv(token, operation.peer, tag=_READY)
                dist.send(operation.tensor, operation.peer, tag=_TENSOR)
            else:
                dist.send(token, operation.peer, tag=_READY)
                dist.recv(operation.tensor, operation.peer, tag=_TENSOR)
            posted.done.set()


def process(rank: int, world: int, port: int, runs: Sequence[tuple[str, Job]], results: Connection) -> None:
    """One rank; the first sends the outcomes back."""
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    worker, plain = Worker(Heartbeat(), join("cpu")), schedules._batch_p2p
    keys: dict[str, Callable[[int], int]] = {STREAMS[1]: lambda peer: peer, STREAMS[2]: lambda _: 0}
    outcomes = []
    for streams, job in runs:
        post: Any = plain if streams == STREAMS[0] else Streams(keys[streams]).post
        schedules._batch_p2p = post
        outcomes.append(worker.run(job))
    if rank == 0:
        results.send(outcomes)
    dist.barrier()
    dist.destroy_process_group()


def run(runs: Sequence[tuple[str, Job]]) -> list[Outcome]:
    """The jobs, each with its way of sharing streams, in one group of processes."""
    world = runs[0][1].problem.devices
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    port = free_port()
    processes = [
        context.Process(target=process, args=(rank, world, port, runs, sending), daemon=True) for rank in range(world)
    ]
    for one in processes:
        one.start()
    sending.close()
    outcomes: list[Outcome] = receiving.recv()
    for one in processes:
        one.join()
    return outcomes


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def problem_of(case: Case, devices: int, microbatches: int) -> Problem:
    """Equal stages; transfers take next to nothing, as they do here."""
    keys = {} if case.chunks is None else {"chunks": case.chunks}
    times = {"forward": 1, "backward": 1, "weight": 1}
    one = {"devices": devices, "microbatches": microbatches, "placement": case.placement, "times": times, **keys}
    return problem_from({"name": case.schedule, "time_unit": "ms", **one}, "benchmark")


def jobs_of(case: Case, devices: int, microbatches: int, seconds: float, steps: int) -> list[Job]:
    """The schedule with torch's lowering, then with ours."""
    one = problem_of(case, devices, microbatches)
    order = HEURISTICS[case.schedule].order(one)
    like = Job("", one, order, (), model=ModelSpec("sleep"), split="store", steps=steps)
    like = replace(like, seconds_per_tick=seconds * float(one.tick))
    return [job_for(simulate(one, order), replace(like, comms=comms)) for comms in (False, True)]


def rows(devices: int, microbatches: int, seconds: float, steps: int) -> list[list[str]]:
    """A row for each schedule and way of sharing; best of the steps."""
    cases = [(case, streams) for case in CASES for streams in STREAMS]
    jobs = [jobs_of(case, devices, microbatches, seconds, steps) for case, _ in cases]
    runs = [(streams, job) for (_, streams), both in zip(cases, jobs, strict=True) for job in both]
    outcomes = run(runs)
    assert all(one.good for one in outcomes), [one.complaints() for one in outcomes]
    found = []
    for number, ((case, streams), (job, _)) in enumerate(zip(cases, jobs, strict=True)):
        both = outcomes[2 * number : 2 * number + 2]
        theirs, ours = (min(measured_of(job, one).makespans) for one in both)
        timeline = simulate(job.problem, job.schedule)
        predicted = job.seconds_per_tick * max(map(timeline.end, job.schedule.passes()))
        times = [f"{1000 * one:.0f}" for one in (theirs, ours)]
        found.append([case.schedule, streams, *times, f"{100 * (theirs / ours - 1):+.1f} %", f"{1000 * predicted:.0f}"])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = ArgumentParser(COMMAND, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.03, help="of a forward, a backward and a weight pass each")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    args = parser.parse_args(arguments)
    note = f"{args.devices} devices, {args.microbatches} micro-batches, {1000 * args.seconds:g} ms a pass, best of"
    where = f"{os.cpu_count()} cores, {platform.system()}, torch {torch.__version__}, gloo"
    head = f"{where}; {note} {args.steps - 1} steps"
    text = f"{head}\n\n{table(HEAD, rows(args.devices, args.microbatches, args.seconds, args.steps))}"
    print(text)
    if args.write:
        put(args.write, COMMAND, text)
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
