"""A job for all processes of a run, and its outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.files.features.catalogue import FEATURES
from pipesched.measurement.trace import Step
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.placement import Placement, bidirectional
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from runtime.execution.program import Program, program_of
from runtime.exporters.catalogue import EXPORTERS
from runtime.exporters.rank_program import rank_program
from runtime.running.torch_version import csv_version

# The types that parameters and data can have.
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class ModelSpec:
    """The model to build, with its options: `gpt`, `sleep`, or the user's `package.module:function`."""

    name: str = "gpt"
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """One schedule to execute for some steps.

    `rows` is the text that PyTorch's runtime loads, `comms` is True if it has sends and receives too, `labels[j]` the
    number of micro-batch j in it. Where `rows` is None, one of our executors runs the `program` of the schedule (both
    directions, offload, recomputation), else `program` is None. `split` is how B leaves gradients of weights to W:
    "autograd" by PyTorch's own split, "store" by linear layers that put them aside. `model` is what is run for `steps`
    steps. `seconds_per_tick` is the time that sleeping stages sleep for each tick of a pass. Parameters and data are of
    the PyTorch type named `dtype`, drawn with `seed`. The first `compared` steps are compared with the reference; all
    are timed.
    """

    name: str
    problem: Problem
    schedule: Schedule
    labels: tuple[int, ...]
    rows: str | None = None
    program: Program | None = None
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
        """The number of stages of the model, which a bidirectional placement has twice."""
        return len(self.problem.placement.chains[0])

    def order_on(self, device: DeviceId) -> tuple[Pass, ...]:
        """Return the passes of a device, in the order in which it starts them."""
        if self.program is None:
            return self.schedule.passes_on(device)
        row = (step for step in self.program.rows[device] if not step.transfer)
        return tuple(Pass(PassKind(step.kind), step.stage, step.microbatch) for step in row)


def job_for(timeline: Timeline, like: Job | None = None) -> Job:
    """Return the job that executes a timeline's schedule, with the options of `like`.

    PyTorch's runtime gets the text that the exporter `torch-csv` writes or, with the option `comms`, `torch-csv-comms`;
    `BadInput` for what PyTorch does not run or the format cannot express. A bidirectional placement, offload and
    recomputation use executors of our own. Of `like` (default: a job with the defaults) name, problem, schedule, rows,
    program and labels do not count.
    """
    problem, schedule = timeline.problem, timeline.schedule
    name, labels = schedule.name or "schedule", tuple(range(problem.microbatches))
    plain = Job(name, problem, schedule, labels)
    job = (
        plain
        if like is None
        else replace(like, name=name, problem=problem, schedule=schedule, labels=labels, rows=None, program=None)
    )
    refuse_unequal(name, problem)
    if len(problem.placement.chains) > 1 and not saves(schedule):
        two_directions(name, problem.placement)
    if len(problem.placement.chains) > 1 or saves(schedule):
        return replace(job, program=program_of(rank_program(name, timeline)))
    exporter = EXPORTERS["torch-csv-comms" if job.comms else "torch-csv"]
    files = exporter.export(timeline, {"torch": csv_version()} if job.comms else {})
    side = json.loads(files[exporter.suffix.replace(".csv", ".meta.json")])
    return replace(job, rows=files[exporter.suffix], labels=tuple(side["csv_microbatch"]))


def refuse_unequal(name: str, problem: Problem) -> None:
    """Raise `BadInput` for features of problem files that PyTorch's runtime and our executors for PyTorch do not run.

    These are collectives, modules, frozen stages, offload to another device, and micro-batches cut into pieces or of
    unequal shapes. The message begins with `name`.
    """
    for feature in FEATURES:
        if not feature.runs_in_torch and feature.present_in(problem):
            raise BadInput(
                f"{name}: found {feature.name}; allowed: whole micro-batches of one shape without collectives with "
                "PyTorch (what it has words for, torch-csv-comms exports)"
            )


def saves(schedule: Schedule) -> bool:
    """Return True if some pass is no F, B, W or BW: offload or recomputation, which PyTorch's runtime cannot run."""
    return any(p.kind not in (F, B, W, BW) for p in schedule.passes())


def two_directions(name: str, where: Placement) -> None:
    """Raise `BadInput` for any placement but the bidirectional one with its two chains.

    Its text begins with `name`.
    """
    if where != bidirectional(where.devices):
        raise BadInput(f"{name}: found {len(where.chains)} chains; allowed: one, or the two of placement bidirectional")


class Difference(NamedTuple):
    """The difference (`value`) of a loss or gradient from the reference in a step, in the Euclidean norm.

    `what` describes the loss or gradient. `limit` is the part explained by rounding, `norm` the reference's own norm.
    `step` counts from 0.
    """

    what: str
    step: int
    value: float
    limit: float
    norm: float

    @property
    def fits(self) -> bool:
        return self.value <= self.limit  # False for NaN too


@dataclass(frozen=True)
class Outcome:
    """The result of a job; `refused` is the runtime's reason for not accepting the schedule, None if it did.

    `missing` names the parameters that got a gradient in the reference alone, `executed[d]` are the passes that device
    d ran in the first step, in order. `random` are the stages that draw random numbers in their forward. `compared` is
    the number of gradients compared in all steps; `worst_loss` and `worst_gradient` are the differences that are the
    largest multiples of their limits, None if nothing was compared. `ordered`: every device kept its order in every
    step. `steps[k][d]` are the measured passes of device d in step k, in order. `machine` describes the machine,
    `versions` has those of libraries by name.
    """

    name: str
    refused: str | None = None
    compared: int = 0
    worst_loss: Difference | None = None
    worst_gradient: Difference | None = None
    missing: tuple[str, ...] = ()
    executed: tuple[tuple[Pass, ...], ...] = ()
    ordered: bool = False
    random: tuple[StageId, ...] = ()
    steps: tuple[Step, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """True if every loss and gradient equals the reference's but for rounding, and every device kept its order.

        False if the job was refused, or no gradient was compared.
        """
        return not self.complaints()

    def complaints(self) -> list[str]:
        """Return a line for each fault of the run; empty if it is good.

        Faults are a refusal by the runtime, missing gradients, differences beyond rounding, orders not kept, and that
        no gradient was compared.
        """
        if self.refused is not None:
            return [f"the runtime refused the schedule: {self.refused}"]
        found = [f"{name} has no gradient" for name in self.missing]
        for worst in (self.worst_loss, self.worst_gradient):
            if worst is not None and not worst.fits:
                found.append(
                    f"{worst.what} differs from the single-process reference by {worst.value:.3g} in step"
                    f" {worst.step + 1} (its norm is {worst.norm:.3g}; rounding explains {worst.limit:.3g})"
                )
        if not self.ordered:
            found.append("a device did not run its passes in the schedule's order")
        if self.worst_gradient is None and not self.missing:
            found.append("no gradient was compared")
        return found
