"""Evidence: what a check of a certificate needs in addition to the problem. All numbers are exact.

`form` is its name in files; one of a form more is a member of `Evidence`, and has its argument in `checking/check.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from pipesched.problem.formatting import visible
from pipesched.results.diagram_evidence import Diagram


@dataclass(frozen=True)
class OnDevice:
    """An argument about one device that needs nothing else."""

    form: ClassVar[str] = "device"
    device: int


@dataclass(frozen=True)
class OnStage:
    """An argument about the micro-batches on one stage."""

    form: ClassVar[str] = "stage"
    stage: int


@dataclass(frozen=True)
class OnStream:
    """An argument about all tasks on one stream of a device."""

    form: ClassVar[str] = "stream"
    device: int
    stream: str


@dataclass(frozen=True)
class AroundDevice:
    """The path to a device, its busy interval, and the path back; `owner` is the device whose span that is.

    `owner` is None for the makespan. `to_last_forward` says where the busy interval is taken to end: at the gradient of
    the micro-batch whose forward is the device's last, or at the device's last gradient.
    """

    form: ClassVar[str] = "around device"
    device: int
    owner: int | None
    to_last_forward: bool


@dataclass(frozen=True)
class ReturnTo:
    """Remaining work of a device after its last forward, and of another one that micro-batches return to."""

    form: ClassVar[str] = "return to a device"
    device: int
    other: int


@dataclass(frozen=True)
class MemoryOfDevice:
    """Memory times time of a device's activations, in the makespan or in the span of the `owner`."""

    form: ClassVar[str] = "memory of a device"
    device: int
    owner: int | None


@dataclass(frozen=True)
class StreamTasks:
    """Tasks of a stream that begin no sooner than `head` and leave no less than `tail`; `owner` is as above.

    Both are in ticks of `tick` units of the problem's time.
    """

    form: ClassVar[str] = "tasks of a stream"
    device: int
    stream: str
    owner: int | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class StreamMemory:
    """Until `head` memory lets only so many forwards begin; what runs later on a stream leaves no less than `tail`.

    All as in `StreamTasks`.
    """

    form: ClassVar[str] = "memory of a stream"
    device: int
    stream: str
    owner: int | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class StreamWeights:
    """Tasks of a stream, less the weight tasks that memory can defer when `tail` is left.

    All as in `StreamTasks`.
    """

    form: ClassVar[str] = "weights of a stream"
    device: int
    stream: str
    owner: int | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class ModeMultipliers:
    """Multipliers of a period's rows: of each device's load and memory over time, and of blocks with each forward.

    Those of blocks, by stage, are in ticks of `tick` units of the problem's time.
    """

    form: ClassVar[str] = "multipliers of modes"
    tick: Fraction
    loads: tuple[Fraction, ...]
    memory: tuple[Fraction, ...]
    blocks: tuple[Fraction, ...]


@dataclass(frozen=True)
class ResourceWeights:
    """Weights of what a device has where activations may be offloaded or recomputed, at least one of them positive.

    Of its compute, then of its memory where that has a limit, then of the streams of copies in the order of their
    names.
    """

    form: ClassVar[str] = "weights of resources"
    device: int
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Refutation:
    """CP-SAT searched the exact model of these devices to its end; all of them if None."""

    form: ClassVar[str] = "refutation"
    devices: tuple[int, ...] | None


@dataclass(frozen=True)
class WithMoreMemory:
    """Evidence of another argument (`kind`), about the problem with so much memory on each device, None: any amount.

    In the unit of the problem's memory, with all that is static.
    """

    capacities: tuple[Fraction | None, ...]
    kind: str
    evidence: Evidence


@dataclass(frozen=True)
class TasksAsStages:
    """Evidence of another argument (`kind`), about the problem in which tasks of passes are stages of their own.

    `stages` are those, chain after chain, in the order in which forwards walk them: of which stage each is, and the
    numbers of the tasks of its F, its B (BW where backwards cannot be split) and its W; None where it has none.
    """

    form: ClassVar[str] = "tasks as stages"
    stages: tuple[tuple[int, int | None, int | None, int | None], ...]
    kind: str
    evidence: Evidence


@dataclass(frozen=True)
class UnknownForm:
    """Evidence that this version cannot read, as it is in the file: `text` is its JSON.

    `mistake` is what is wrong with evidence of a form that it knows.
    """

    form: str
    text: str
    mistake: str | None = None

    def __str__(self) -> str:
        form = visible(self.form[:60])
        said = (
            f"of a form unknown to this version: {form}"
            if self.mistake is None
            else f"that cannot be read: {self.mistake}"
        )
        return f"evidence {said}"


Evidence = (
    OnDevice
    | OnStage
    | OnStream
    | AroundDevice
    | ReturnTo
    | MemoryOfDevice
    | StreamTasks
    | StreamMemory
    | StreamWeights
    | ModeMultipliers
    | ResourceWeights
    | Diagram
    | Refutation
    | WithMoreMemory
    | TasksAsStages
    | UnknownForm
)
