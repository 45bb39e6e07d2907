"""A stage: what the passes of one stage cost, in ticks, and hold, in the memory's integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.passes import BW, B, F, PassKind, W

# The stream that runs what names no other.
COMPUTE = "compute"


class TaskSpec(NamedTuple):
    """One task of a pass: the stream it occupies, for how many ticks, and what it is called."""

    stream: str
    ticks: int
    name: str = ""


@dataclass(frozen=True)
class Stage:
    """Durations of a stage's passes and what its micro-batches hold.

    Without `weight` the backward cannot be split: `backward` and `fused` are then the same, full backward.
    `overlapped` is one block of this stage's forward and a full backward run together. A tensor from this stage to the
    next, or its gradient back, takes `transfer` ticks in addition to those of the link, between two devices only.

    F takes `activation` when it starts. B gives back `freed` when it ends, W the rest when it ends, BW all of it. A
    negative `freed` is taken when B starts (autograd's split backward keeps more, not less). `static` is held at all
    times (weights, gradients, optimizer). `tasks` lists the tasks of those passes that are not one task on `compute`.
    """

    forward: int
    backward: int
    weight: int | None
    fused: int
    transfer: int = 0
    overlapped: int | None = None
    activation: int = 1
    freed: int = 0
    static: int = 0
    tasks: tuple[tuple[PassKind, tuple[TaskSpec, ...]], ...] = ()

    @property
    def kinds(self) -> tuple[PassKind, ...]:
        """The kinds of passes that this stage may run."""
        return (F, BW) if self.weight is None else (F, B, W, BW)

    def tasks_of(self, kind: PassKind) -> tuple[TaskSpec, ...]:
        """The tasks of a pass of this stage, in the order they run."""
        for given, tasks in self.tasks:
            if given is kind:
                return tasks
        if kind is W:
            assert self.weight is not None, "this stage's backward is never split"
            return (TaskSpec(COMPUTE, self.weight),)
        return (TaskSpec(COMPUTE, {F: self.forward, B: self.backward, BW: self.fused}[kind]),)

    def ticks(self, kind: PassKind) -> int:
        """Ticks from a pass's start to its end when nothing interrupts it and it shares its slot with no other."""
        return sum(task.ticks for task in self.tasks_of(kind))

    def compute_ticks(self, *kinds: PassKind) -> int:
        """Of the ticks of passes of these kinds, those on `compute`."""
        return sum(task.ticks for kind in kinds for task in self.tasks_of(kind) if task.stream == COMPUTE)


def stages_of(
    forward: Sequence[int],
    backward: Sequence[int],
    weight: Sequence[int] | None,
    fused: Sequence[int],
    transfer: Sequence[int] | None = None,
    overlapped: Sequence[int] | None = None,
    *,
    activation: Sequence[int] | None = None,
    freed: Sequence[int] | None = None,
    static: Sequence[int] | None = None,
) -> tuple[Stage, ...]:
    """Stages from one sequence a quantity, each with an entry a stage; what is left out is as in `Stage`."""
    given = {
        "forward": forward, "backward": backward, "weight": weight, "fused": fused, "transfer": transfer,
        "overlapped": overlapped, "activation": activation, "freed": freed, "static": static,
    }  # fmt: skip
    rows = {name: column for name, column in given.items() if column is not None}
    entries = zip(*rows.values(), strict=True)
    return tuple(Stage(**({"weight": None} | dict(zip(rows, entry, strict=True)))) for entry in entries)
