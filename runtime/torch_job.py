"""What is run and what comes of it: a job for all processes, and what each of them and the comparison have to say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipesched.measured import Step
from pipesched.passes import Pass
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.timeline import Timeline
from runtime.catalogue import EXPORTERS

# The largest difference from the reference that rounding explains, in units of max(1, largest reference entry).
TOLERANCES: Mapping[str, float] = {"float64": 1e-12, "float32": 2e-6}


@dataclass(frozen=True)
class ModelSpec:
    """Which model to build: `gpt`, `sleep`, or the user's `package.module:function`; with its options."""

    name: str = "gpt"
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One schedule to execute for some steps.

    `rows` is the text that PyTorch's runtime loads, `comms` whether it holds sends and receives too, `labels[j]` the
    number micro-batch j has in it. Without `rows` our own executor runs the schedule. `split` is `autograd` or
    `store`. `seconds_per_tick` is how long sleeping stages sleep. The first `compared` steps are compared with the
    reference; all are timed.
    """

    name: str
    problem: Problem
    schedule: Schedule
    labels: tuple[int, ...]
    rows: str | None = None
    comms: bool = False
    model: ModelSpec = ModelSpec()
    split: str = "autograd"
    dtype: str = "float64"
    seed: int = 0
    steps: int = 2
    compared: int = 2
    seconds_per_tick: float = 0.0

    @property
    def depth(self) -> int:
        """How many stages the model is cut into; a bidirectional placement holds each of them twice."""
        return len(self.problem.placement.chains[0])


def job_for(timeline: Timeline, like: Job | None = None) -> Job:
    """The job that executes a timeline's schedule, with the options of `like`.

    PyTorch's runtime gets the text of the `torch-csv` exporter, which raises `BadInput` for what it cannot express; a
    bidirectional placement goes to our own executor.
    """
    problem, schedule = timeline.problem, timeline.schedule
    name, labels = schedule.name or "schedule", tuple(range(problem.microbatches))
    plain = Job(name, problem, schedule, labels)
    job = (
        plain
        if like is None
        else replace(like, name=name, problem=problem, schedule=schedule, labels=labels, rows=None)
    )
    if len(problem.placement.chains) > 1:
        return job
    files = EXPORTERS["torch-csv"].export(timeline)
    return replace(job, rows=files[".csv"], labels=tuple(json.loads(files[".meta.json"])["csv_microbatch"]))


class Difference(NamedTuple):
    """How far a loss or a gradient is from the reference; `limit` is what rounding explains."""

    what: str
    step: int
    value: float
    limit: float

    @property
    def fits(self) -> bool:
        return self.value <= self.limit  # False for NaN too


@dataclass(frozen=True)
class Outcome:
    """What came of a job; `refused` is why the runtime did not take the schedule at all.

    `missing` names the parameters that got no gradient, `executed[d]` is what device d ran, in order.
    """

    name: str
    refused: str | None = None
    compared: int = 0
    worst_loss: Difference | None = None
    worst_gradient: Difference | None = None
    missing: tuple[str, ...] = ()
    executed: tuple[tuple[Pass, ...], ...] = ()
    ordered: bool = False
    steps: tuple[Step, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether every loss and gradient is the reference's and every device kept to its order."""
        return not self.complaints()

    def complaints(self) -> list[str]:
        """What is wrong, a line each."""
        if self.refused is not None:
            return [f"the runtime refused the schedule: {self.refused}"]
        found = [f"{name} has no gradient" for name in self.missing]
        for worst in (self.worst_loss, self.worst_gradient):
            if worst is not None and not worst.fits:
                found.append(
                    f"{worst.what} differs from the single-process reference by {worst.value:.3g} in step"
                    f" {worst.step + 1} (rounding explains {worst.limit:.3g})"
                )
        if not self.ordered:
            found.append("a device did not run its passes in the schedule's order")
        if self.worst_gradient is None and not self.missing:
            found.append("no gradient was compared")
        return found
