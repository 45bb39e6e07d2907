"""Evidence: the data that the check of a certificate needs in addition to the problem. All numbers are exact.

`form` is the name in files. A new form becomes a member of `Evidence`, and gets its argument in `checking/check.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from pipesched.problem.formatting import visible
from pipesched.problem.quantities import DeviceId, StageId, TaskPart
from pipesched.results.diagram_evidence import Diagram


@dataclass(frozen=True)
class OnDevice:
    """Evidence of an argument about one device that needs no other data."""

    form: ClassVar[str] = "device"
    device: DeviceId


@dataclass(frozen=True)
class OnStage:
    """Evidence of an argument about the micro-batches on one stage."""

    form: ClassVar[str] = "stage"
    stage: StageId


@dataclass(frozen=True)
class OnStream:
    """Evidence of an argument about all tasks on one stream of a device."""

    form: ClassVar[str] = "stream"
    device: DeviceId
    stream: str


@dataclass(frozen=True)
class AroundDevice:
    """Evidence for the path to a device, its busy interval, and the path back, within the span of the device `owner`.

    `owner` is None for the makespan. With `to_last_forward` the busy interval ends at the gradient of the micro-batch
    whose forward is the device's last, else at the device's last gradient.
    """

    form: ClassVar[str] = "around device"
    device: DeviceId
    owner: DeviceId | None
    to_last_forward: bool


@dataclass(frozen=True)
class ReturnTo:
    """Evidence for the work that `device` has left after its last forward, and for that of the device `other` after it.

    Micro-batches return to `other` from `device`.
    """

    form: ClassVar[str] = "return to a device"
    device: DeviceId
    other: DeviceId


@dataclass(frozen=True)
class MemoryOfDevice:
    """Evidence for memory times time of a device's activations, in the span of device `owner` (None: the makespan)."""

    form: ClassVar[str] = "memory of a device"
    device: DeviceId
    owner: DeviceId | None


@dataclass(frozen=True)
class StreamTasks:
    """Evidence for tasks of a stream that begin no sooner than `head` and leave no less than `tail` after them.

    `owner` is the device whose span is bounded, None for the makespan. Times are in ticks of `tick` units of the
    problem's time.
    """

    form: ClassVar[str] = "tasks of a stream"
    device: DeviceId
    stream: str
    owner: DeviceId | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class StreamMemory:
    """Evidence that until `head` memory admits only some forwards of the device.

    So other tasks of its stream run later. The tasks that run later have at least `tail` after them. The stream is
    `stream` of `device`. `owner` is the device whose span is bounded (None: makespan). `head` and `tail` are in ticks,
    each of `tick` units of the problem's time.
    """

    form: ClassVar[str] = "memory of a stream"
    device: DeviceId
    stream: str
    owner: DeviceId | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class StreamWeights:
    """Evidence on the tasks of a stream that begin no sooner than `head` and have at least `tail` after them.

    Its other tasks do not count; of the weight tasks neither do those that memory lets wait when only `tail` is left.
    The stream is `stream` of `device`. `head` is measured from the first start and `tail` to the last end on the device
    `owner`, whose span is bounded (None: from the start and to the end of all, for the makespan). Both are in ticks,
    each of `tick` units of the problem's time.
    """

    form: ClassVar[str] = "weights of a stream"
    device: DeviceId
    stream: str
    owner: DeviceId | None
    tick: Fraction
    head: int
    tail: int


@dataclass(frozen=True)
class ModeMultipliers:
    """Evidence of multipliers for the constraints of a period.

    `loads` and `memory` over time are by device, `blocks` by stage. The constraint of `blocks` says that each forward
    of the stage is in at most one block. Its multipliers are in ticks, each of `tick` units of the problem's time.
    """

    form: ClassVar[str] = "multipliers of modes"
    tick: Fraction
    loads: tuple[Fraction, ...]
    memory: tuple[Fraction, ...]
    blocks: tuple[Fraction, ...]


@dataclass(frozen=True)
class ResourceWeights:
    """Evidence of weights of a device's resources where activations may be offloaded or recomputed.

    At least one is positive. The order is its compute stream, its memory if that is limited, then the streams of copies
    by name.
    """

    form: ClassVar[str] = "weights of resources"
    device: DeviceId
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Refutation:
    """Evidence that CP-SAT searched the exact model of these devices (None: of all) exhaustively."""

    form: ClassVar[str] = "refutation"
    devices: tuple[DeviceId, ...] | None


@dataclass(frozen=True)
class MoreMemory:
    """Relaxation: each device has this capacity, no less than its own (None: unlimited).

    Capacities include static memory, in the unit of the problem's memory.
    """

    form: ClassVar[str] = "more memory"
    capacities: tuple[Fraction | None, ...]


@dataclass(frozen=True)
class MemoryOfPartners:
    """Relaxation: these devices have the memory of their group.

    A group is the devices linked by activations that move from one's memory to another's. An activation of a stage on
    one of `devices` counts as the memory that its micro-batch keeps anywhere in the group, for that stage and for the
    stages before it, back to the last one on the same device.
    """

    form: ClassVar[str] = "memory of partners"
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True)
class TasksAsStages:
    """Relaxation: tasks of passes are stages of their own.

    `stages` has a row for each new stage, chain after chain in walking order: the original stage, and the numbers of
    the tasks of its F, of its B (BW where backwards are not split) and of its W; None where the row has none.
    """

    form: ClassVar[str] = "tasks as stages"
    stages: tuple[tuple[StageId, TaskPart | None, TaskPart | None, TaskPart | None], ...]


# In the order in which they are applied: one applied later may be within one applied earlier.
RelaxedBy = MoreMemory | MemoryOfPartners | TasksAsStages


@dataclass(frozen=True)
class OfRelaxed:
    """Evidence of the argument `kind` about the simpler problem that `relaxation` makes of the certificate's."""

    relaxation: RelaxedBy
    kind: str
    evidence: Evidence


@dataclass(frozen=True)
class UnknownForm:
    """Evidence that this version cannot read: `text` is JSON of the same content as in the file.

    `form` is the form's name, the text "None" if the file names none. `mistake` says what is wrong, and is None if
    the form has a name that this version does not know. As text it is a phrase that fits after "has" in a message.
    """

    form: str
    text: str
    mistake: str | None = None

    def __str__(self) -> str:
        form = visible(self.form[:60])
        description = (
            f"of a form unknown to this version: {form}"
            if self.mistake is None
            else f"that cannot be read: {self.mistake}"
        )
        return f"evidence {description}"


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
    | OfRelaxed
    | UnknownForm
)


def relaxation_of(evidence: Evidence | None) -> RelaxedBy | None:
    """Return the relaxation whose problem the evidence is about, the first if it names several.

    None where it is about the problem itself, or there is no evidence.
    """
    return evidence.relaxation if isinstance(evidence, OfRelaxed) else None
