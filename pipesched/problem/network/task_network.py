"""The task network: the tasks of one micro-batch in every mode, and what each waits for; an iteration is its copies.

Multi-mode scheduling (Talbot, Management Science 28, 1982): a backward runs in one of its modes, and the tasks of the
others are then not there. An arc between two tasks holds where both are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from pipesched.problem.network.share import Share
from pipesched.problem.passes import BW, OF_PARAMETERS, RESHARD, UNSHARD, B, F, Pass, PassKind, W

# A pass of any micro-batch.
PassType = tuple[PassKind, int]


class Mode(StrEnum):
    """Modes of a backward."""

    SPLIT = "split"  # B, and a later W
    FUSED = "fused"  # BW


class Resource(NamedTuple):
    """A stream of a device; it runs one task at a time. Of a stream that devices share, `device` is their first."""

    device: int
    stream: str


class TaskType(NamedTuple):
    """A task of any micro-batch: `part` counts from 0 along the pass."""

    kind: PassKind
    stage: int
    part: int = 0

    @property
    def pass_type(self) -> PassType:
        return self.kind, self.stage


class MemoryChange(NamedTuple):
    """Memory that a pass takes when it starts and when it ends (negative: gives back).

    It starts with the first of its tasks, and ends when the last of those in `TaskNetwork.ends` has ended.
    """

    at_start: int
    at_end: int

    @property
    def total(self) -> int:
        return self.at_start + self.at_end


class TaskTemplate(NamedTuple):
    """A task of every micro-batch: where it runs and for how many ticks."""

    resource: Resource
    ticks: int
    name: str


class Arc(NamedTuple):
    """A task starts no sooner than `lag` ticks after the end of that one of the alternatives that runs.

    Of an `optional` arc's alternatives none may run; of another's always one does. They are tasks of the same
    micro-batch, or of those that `share` says.
    """

    after: TaskType
    alternatives: tuple[TaskType, ...]
    lag: int
    optional: bool = False
    share: Share | None = None


class Need(NamedTuple):
    """A pass starts no sooner than `lag` ticks after the end of that one of the alternatives that runs, if any does.

    They are passes of the same micro-batch, or of those that `share` says. All their tasks must have ended, or where
    there is a `bucket`, its number and that of all, as large a part of them.
    """

    alternatives: tuple[PassType, ...]
    lag: int
    optional: bool = False
    share: Share | None = None
    bucket: tuple[int, int] | None = None


class HostMemory(NamedTuple):
    """The memory of a host: how much there is, None where unlimited, and the devices whose passes take of it."""

    room: int | None
    devices: tuple[int, ...]


@dataclass(frozen=True)
class TaskNetwork:
    """`tasks` and `change` have an entry for each type of pass that some mode runs, in the order F, B, W, BW.

    `numbers` are the micro-batches that have such a pass; passes that run once an iteration have the number 0.

    `arcs` are all precedences of one micro-batch, also those inside a pass. `room[d]` is the memory of device d that is
    left for activations, None where it is unlimited. Between micro-batches only resources and memory couple tasks.

    `ends` are the last tasks of a pass: it has ended when all of them have. They are the last of a chain, or each task
    of a W. A task that sends the pass's tensor on follows its end.

    Passes that copy or recompute an activation exist or not, as `options` says for each stage that may save memory: the
    sets of kinds of which a micro-batch runs just one. `given_up` is the memory that the F of a recomputed micro-batch
    gives back when it ends, by the pass that takes it again. `host_change` is like `change`, of the memory of `hosts`.

    A forward of a stage in `blocks` may run with a full backward of its device as one block of so many ticks.
    `scale[j]` is a factor on the ticks and activations of micro-batch j; empty where all are 1. `device_of[s]` is the
    device that runs the passes of stage s and whose memory they take.

    `until_end` is the memory that a pass takes and no pass gives back, where there is any.
    """

    tasks: Mapping[PassType, tuple[TaskTemplate, ...]]
    ends: Mapping[PassType, tuple[int, ...]]
    change: Mapping[PassType, MemoryChange]
    arcs: tuple[Arc, ...]
    room: tuple[int | None, ...]
    modes: frozenset[Mode]
    options: Mapping[int, tuple[frozenset[PassKind], ...]] = field(default_factory=dict)
    given_up: Mapping[PassType, int] = field(default_factory=dict)
    host_change: Mapping[PassType, MemoryChange] = field(default_factory=dict)
    hosts: tuple[HostMemory, ...] = ()
    numbers: Mapping[PassType, range] = field(default_factory=dict)
    blocks: Mapping[int, int] = field(default_factory=dict)
    scale: tuple[Fraction, ...] = ()
    device_of: tuple[int, ...] = ()
    until_end: Mapping[PassType, int] = field(default_factory=dict)

    def drop(
        self,
        passes: Collection[PassType] = (),
        leading: Mapping[PassType, int] = MappingProxyType({}),
        arcs: Callable[[Arc], bool] = lambda _: False,
        limits: Collection[int] = (),
    ) -> TaskNetwork:
        """A relaxation: without these passes, so many leading tasks of a pass, these arcs, and limits of these devices.

        Every schedule of this network, without what is dropped and with all else at its time, is one of that network:
        no task runs on a resource at which another one runs, each arc that is left binds tasks that are left, and no
        memory holds more. For a pass that begins with a later task takes its memory later; dropped passes take nothing,
        or take all that they give back, before they give it back. It ends no later, and no device works longer from its
        first task to its last. So no lower bound of that network is above the optimum of this one.

        `ValueError` where passes are dropped that give back what others take, or all tasks after which a pass ends.
        """
        gone = frozenset(passes)
        self._refuse_what_holds(gone, leading)
        kept = [of for of in self.tasks if of not in gone]

        def moved(task: TaskType) -> TaskType | None:
            part = task.part - leading.get(task.pass_type, 0)
            return None if task.pass_type in gone or part < 0 else task._replace(part=part)

        left = list[Arc]()
        for arc in self.arcs:
            after, before = moved(arc.after), [moved(task) for task in arc.alternatives]
            staying = tuple(task for task in before if task is not None)
            if after is not None and staying and not arcs(arc):
                optional = arc.optional or len(staying) < len(before)
                left.append(arc._replace(after=after, alternatives=staying, optional=optional))
        return replace(
            self,
            tasks={of: self.tasks[of][leading.get(of, 0) :] for of in kept},
            ends={of: tuple(part - leading.get(of, 0) for part in self.ends[of]) for of in kept},
            change={of: self.change[of] for of in kept},
            arcs=tuple(left),
            room=tuple(None if device in limits else room for device, room in enumerate(self.room)),
            numbers={of: self.numbers[of] for of in kept},
            blocks={stage: ticks for stage, ticks in self.blocks.items() if (F, stage) not in gone},
            until_end={of: self.until_end[of] for of in kept if of in self.until_end},
        )

    @cached_property
    def of_microbatches(self) -> TaskNetwork:
        """Without what runs for the parameters of stages."""
        return self.drop(passes=[of for of in self.tasks if of[0] in OF_PARAMETERS])

    def _refuse_what_holds(self, passes: frozenset[PassType], leading: Mapping[PassType, int]) -> None:
        """`ValueError` where less would be given back than is taken, or a pass would have no end."""
        for kind, stage in passes:
            together = (UNSHARD, stage), (RESHARD, stage)
            given = self.change[kind, stage] != MemoryChange(0, 0) or (kind, stage) in self.host_change
            if given and not ((kind, stage) in together and passes.issuperset(together)):
                raise ValueError(f"{kind}{stage} gives back what other passes take; allowed: passes that take nothing")
        for of, tasks in leading.items():
            if tasks > min(self.ends[of]):
                raise ValueError(f"{of[0]}{of[1]} ends with one of its first {tasks} tasks; allowed: those before")

    @cached_property
    def arcs_into(self) -> Mapping[PassType, tuple[Arc, ...]]:
        """The arcs that end in a task of each type of pass."""
        found: dict[PassType, list[Arc]] = {pass_type: [] for pass_type in self.tasks}
        for arc in self.arcs:
            found[arc.after.pass_type].append(arc)
        return {pass_type: tuple(arcs) for pass_type, arcs in found.items()}

    @cached_property
    def arcs_from(self) -> Mapping[TaskType, tuple[Arc, ...]]:
        """The arcs of each task, among the alternatives of which it is."""
        found: dict[TaskType, list[Arc]] = {
            TaskType(*of, part): [] for of, tasks in self.tasks.items() for part in range(len(tasks))
        }
        for arc in self.arcs:
            for task in arc.alternatives:
                found[task].append(arc)
        return {task: tuple(arcs) for task, arcs in found.items()}

    @cached_property
    def needs(self) -> Mapping[PassType, tuple[Need, ...]]:
        """The precedences between passes, for readers that see a pass as one box, without what sends its tensor on.

        Where passes are several tasks, some may start sooner than this; an order of passes that keeps it can be run.
        """
        return {
            after: tuple(
                dict.fromkeys(self._need(arc) for arc in arcs if arc.share or arc.alternatives[0].pass_type != after)
            )
            for after, arcs in self.arcs_into.items()
        }

    def _need(self, arc: Arc) -> Need:
        """An arc between whole passes: a tensor that a task sends arrives as long after the pass as it takes."""
        sender = arc.alternatives[0]
        sending = self.tasks[sender.pass_type][self.ends[sender.pass_type][-1] + 1 : sender.part + 1]
        lag = arc.lag + sum(task.ticks for task in sending)
        return Need(tuple(task.pass_type for task in arc.alternatives), lag, arc.optional, arc.share)

    def predecessors(self, p: Pass, present: Container[Pass]) -> Iterator[tuple[Pass, int]]:
        """The passes that p waits for, each with its lag.

        Of alternatives it is the one that is present, or the first if none is and one must be.
        """
        for alternatives, lag, optional, share, _ in self.needs[p[:2]]:
            for j in (p.microbatch,) if share is None else share.numbers(p.microbatch):
                passes = [Pass(kind, stage, j) for kind, stage in alternatives]
                found = next((other for other in passes if other in present), None if optional else passes[0])
                if found is not None:
                    yield found, lag

    @cached_property
    def backwards(self) -> tuple[tuple[PassKind, ...], ...]:
        """The kinds of passes that a backward is in each mode, split first."""
        of = {Mode.SPLIT: (B, W), Mode.FUSED: (BW,)}
        return tuple(kinds for mode, kinds in of.items() if mode in self.modes)

    @property
    def gradient(self) -> PassKind:
        """The kind of pass that gives the gradient where backwards are split as far as they may be."""
        return self.backwards[0][0]

    @property
    def has_activation_modes(self) -> bool:
        """True if an activation may be copied or computed again: passes run or not, as a schedule says."""
        return bool(self.options)

    @cached_property
    def held_in_flight(self) -> tuple[int, ...]:
        """Memory of a micro-batch on each stage from its forward's start to its backward's end."""
        return tuple(self._taken_for_later((kind, s)) for kind, s in self.change if kind is F)

    @cached_property
    def held_for_weight(self) -> tuple[int, ...]:
        """Memory of a micro-batch on each stage between its B and the end of its W; 0 where none is split."""
        stages = range(len(self.held_in_flight))
        return tuple(-self._taken_for_later((W, s)) if (W, s) in self.change else 0 for s in stages)

    def _taken_for_later(self, of: PassType) -> int:
        """Memory that a pass takes and a later pass gives back; negative where it gives back an earlier one's."""
        return self.change[of].total - self.until_end.get(of, 0)

    @cached_property
    def held_until_last(self) -> tuple[int, ...]:
        """Memory of a micro-batch on each stage that the last pass of its backward gives back: W or else BW."""
        last = self.backwards[0][-1]
        return tuple(-self._taken_for_later((last, s)) for s in range(len(self.held_in_flight)))

    @cached_property
    def freed_by_backward(self) -> tuple[int, ...]:
        """Memory that a micro-batch's B gives back on each stage; negative where it takes more."""
        return tuple(whole - rest for whole, rest in zip(self.held_in_flight, self.held_for_weight, strict=True))

    @cached_property
    def backward_takes_memory(self) -> bool:
        """True if B takes memory on some stage, like autograd's split backward."""
        return any(change.at_start > 0 for (kind, _), change in self.change.items() if kind is B)

    @cached_property
    def has_pass_memory(self) -> bool:
        """True if a pass has workspace or keeps memory until the end: an F that gives back, or a W or BW that takes."""
        changes = self.change.items()
        return bool(self.until_end) or any(
            one.at_end < 0 if kind is F else one.at_start > 0 for (kind, _), one in changes if kind in (F, W, BW)
        )

    @cached_property
    def one_task_each(self) -> bool:
        """True if every pass is one task, runs in any case and waits for passes of its own micro-batch alone.

        One stream of a device then runs everything, and chains have nothing but devices and memory in common.
        """
        devices = {resource.device for resource in self.resources}
        return (
            self.has_plain_chains
            and all(len(tasks) == 1 for tasks in self.tasks.values())
            and len(self.resources) == len(devices)
        )

    @property
    def has_plain_chains(self) -> bool:
        """True if every pass, of one or several tasks, runs in any case and waits for its own micro-batch alone."""
        return not (self.options or self.has_collectives or self.has_arcs_between_chains)

    @cached_property
    def has_arcs_between_chains(self) -> bool:
        """True if a pass of a micro-batch waits for others."""
        return any(arc.share is not None and arc.after.kind not in OF_PARAMETERS for arc in self.arcs)

    @cached_property
    def has_collectives(self) -> bool:
        """True if something runs for the parameters of a stage."""
        return any(kind in OF_PARAMETERS for kind, _ in self.tasks)

    @property
    def what_is_not_single(self) -> str:
        """The features of a problem that is not `one_task_each`, for messages."""
        if self.options:
            return "offload or recomputation"
        if self.has_collectives:
            return "collectives of stages"
        return "pieces or modules" if self.has_arcs_between_chains else "passes of several tasks"

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Every resource that some task occupies."""
        return tuple(sorted({task.resource for tasks in self.tasks.values() for task in tasks}))
