"""Heartbeats: each process reports its current pass, so that a stalled run ends with a report of who waits for whom."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pipesched.problem.quantities import DeviceId
from runtime.running.job import Job
from runtime.running.torch_timing import inputs_from_elsewhere

STARTS, WAITS, RUNS, FAILED = "starts", "waits", "runs", "has failed"
# A process may take any time for these: they are the user's code, or all of the model's passes one after the other.
BUILDS, REFERENCE = "builds its model", "computes the reference"


@dataclass(frozen=True)
class State:
    """The state of a process.

    `doing` is `waits` or `runs`, for pass number `at` of its order (from 0), or free text for anything else. `job` is
    the number of its job among those of the run. `beat` grows with every change, so that a state that occurs again
    differs from one that did not change.
    """

    doing: str = STARTS
    job: int = 0
    at: int = 0
    beat: int = 0


class Heartbeat:
    """A writer of a process's state to a file that its parent reads.

    Without a path the state is only kept in memory. The caller sets `job`, the number of its job, for the states that
    follow.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.state = State()
        self.job = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT) if path else None

    def tell(self, doing: str, at: int = 0) -> None:
        """Set what the process is doing, at pass number `at` of its order, and write it to the file, if it has one.

        It is one small write: a reader sees the state before it or after it.
        """
        self.state = State(doing, self.job, at, self.state.beat + 1)
        if self._file is not None:
            os.pwrite(self._file, json.dumps(asdict(self.state)).ljust(200).encode(), 0)


def read_state(path: Path) -> State:
    """Return the last state that a process wrote; the state of a process that is starting if nothing can be read."""
    try:
        return State(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return State()


def who_waits(jobs: Sequence[Job], states: Sequence[State], devices: Sequence[DeviceId] | None = None) -> list[str]:
    """Return a line for each device on what it is doing; where it waits for tensors, one for each pass that yields one.

    `states` are those of `devices`, by default of all, in order; `jobs` are the run's, in the order of their numbers.
    """
    numbers = range(len(states)) if devices is None else devices
    return [line for device, state in zip(numbers, states, strict=True) for line in _lines(jobs, device, state)]


def _lines(jobs: Sequence[Job], device: DeviceId, state: State) -> list[str]:
    if state.doing not in (WAITS, RUNS):
        return [f"device {device} {state.doing}"]
    job = jobs[state.job]
    order = job.order_on(device)
    if state.at >= len(order):
        return [f"device {device} has run its passes and waits for what it sent to be received"]
    p = order[state.at]
    if state.doing == RUNS:
        return [f"device {device} is still in {p}"]
    others = inputs_from_elsewhere(job.problem, job.schedule, p)
    if not others:
        return [f"device {device} is about to run {p}"]
    return [f"device {device} waits for {before} of device {other}, to run {p}" for before, other in others]


def end_when_stalled(heartbeat: Heartbeat, timeout: float, describe: Callable[[State], Sequence[str]]) -> None:
    """Start a thread that ends this process when it has not moved on within a step for `timeout` seconds.

    It first prints the lines of `describe(state)` to the standard error; the exit code is 1. It is for processes
    without a parent of ours. The thread ends once `heartbeat.tell("has finished")` was called. Between steps a process
    may wait for others that build their model or compute the reference; the program that started all processes ends
    them when one has failed.
    """

    def watch() -> None:
        seen, since = heartbeat.state, time.monotonic()
        while True:
            time.sleep(min(1.0, timeout / 4))
            if heartbeat.state.doing == "has finished":
                return
            if heartbeat.state != seen or seen.doing not in (WAITS, RUNS):
                seen, since = heartbeat.state, time.monotonic()
            elif time.monotonic() - since > timeout:
                sys.stderr.write("".join(f"pipesched: stalled for {timeout:g} s: {x}\n" for x in describe(seen)))
                sys.stderr.flush()
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
