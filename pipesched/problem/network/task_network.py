"""The task network: tasks of one micro-batch in every mode, and precedences.

An iteration is a copy for each micro-batch. Multi-mode scheduling (Talbot, Management Science 28, 1982): a backward
runs in one of its modes, and the tasks of the other modes are absent. An arc between two tasks applies where both are
present.
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
from pipesched.problem.passes import BW, OF_PARAMETERS, RESHARD, SAVING, UNSHARD, B, F, Pass, PassKind, W
from pipesched.problem.quantities import DeviceId, MemorySteps, ReservoirId, StageId, TaskPart, Ticks
from pipesched.problem.resource import Resource as Resource  # noqa: PLC0414 - who reads a network names its resources

# A pass of any micro-batch.
PassType = tuple[PassKind, StageId]


class Mode(StrEnum):
    """Modes of a backward: `SPLIT` into B and a later W, or `FUSED` (BW)."""

    SPLIT = "split"  # B, and a later W
    FUSED = "fused"  # BW


class TaskType(NamedTuple):
    """A task of any micro-batch: kind of pass, stage, and `part`, counted from 0 along the pass."""

    kind: PassKind
    stage: StageId
    part: TaskPart = 0

    @property
    def pass_type(self) -> PassType:
        return self.kind, self.stage


class MemoryChange(NamedTuple):
    """Memory that a pass takes at its start and at its end, in steps of the resolution (negative: frees).

    A pass starts with the first of its tasks, and ends when the last of its tasks in `TaskNetwork.ends` has ended.
    """

    at_start: MemorySteps
    at_end: MemorySteps

    @property
    def total(self) -> MemorySteps:
        return self.at_start + self.at_end


class TaskTemplate(NamedTuple):
    """A task as every micro-batch runs it: the resources that it occupies from start to end, ticks, and name.

    The first resource is a stream of its stage's device, on which it has its place in an order of passes. Others may be
    of any device.
    """

    resources: tuple[Resource, ...]
    ticks: Ticks
    name: str


class Arc(NamedTuple):
    """A precedence: task `after` starts at least `lag` ticks after the end of the alternative that runs.

    Exactly one of `alternatives` runs, or if `optional` at most one. They are tasks of the same micro-batch if `share`
    is None, else of those that it gives.
    """

    after: TaskType
    alternatives: tuple[TaskType, ...]
    lag: Ticks
    optional: bool = False
    share: Share | None = None


class Need(NamedTuple):
    """A precedence between passes: a pass starts at least `lag` ticks after the end of whichever alternative runs.

    Exactly one of `alternatives` runs, or if `optional` at most one. They are passes of the same micro-batch if `share`
    is None, else of those that it gives. The pass waits for all their tasks, or if `bucket`, a pair (index, number of
    buckets), is not None, only for the tasks that complete that bucket of gradients.
    """

    alternatives: tuple[PassType, ...]
    lag: Ticks
    optional: bool = False
    share: Share | None = None
    bucket: tuple[int, int] | None = None


class Reservoir(NamedTuple):
    """A memory that passes take from: its size `room` (None: unlimited), and the devices whose passes take from it."""

    room: MemorySteps | None
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True)
class TaskNetwork:
    """The tasks of an iteration, the precedences between them, and the resources and memory that they use.

    `tasks` and `change` have an entry for each type of pass that some mode runs: F, B, W, BW, then copies and
    recomputations, then passes for parameters. `numbers` are the micro-batches that have a pass of a type; passes for
    parameters are numbered from 0.

    `arcs` are all precedences of one micro-batch, including those inside a pass. `room[d]` is the memory of device d
    for activations, None where unlimited. Between micro-batches only resources, memory and arcs with a `share` couple
    tasks.

    `ends` are the indices of the last tasks of a pass, which has ended when all of them have: one task, or each task of
    a W. A task that sends the pass's tensor follows its end.

    Passes that copy or recompute an activation are optional: `options` gives for each stage that may save memory the
    sets of kinds of which a micro-batch runs exactly one. `modes` are those in which backwards may run. `given_up` is
    the memory that the F of a recomputed micro-batch frees at its end, by the recomputing pass.

    `change` is of the memory of a pass's own device. `elsewhere` has, for passes that change other memory too, the
    number of each such reservoir with the change: device d is reservoir d, and the memories of `hosts` follow those of
    the devices.

    A forward of one stage and a full backward of the same or another may run together as one block where `blocks` has
    the two stages, with the block's ticks. `scale[j]` is a factor on the ticks, lags and memory of micro-batch j, which
    all other fields leave out; empty where all are 1. `device_of[s]` is the device of stage s, whose memory its passes
    take. `until_end` is the memory, part of `change`, that a pass takes and no pass frees; without an entry it is 0.
    """

    tasks: Mapping[PassType, tuple[TaskTemplate, ...]]
    ends: Mapping[PassType, tuple[TaskPart, ...]]
    change: Mapping[PassType, MemoryChange]
    arcs: tuple[Arc, ...]
    room: tuple[MemorySteps | None, ...]
    modes: frozenset[Mode]
    options: Mapping[StageId, tuple[frozenset[PassKind], ...]] = field(default_factory=dict)
    given_up: Mapping[PassType, MemorySteps] = field(default_factory=dict)
    elsewhere: Mapping[PassType, tuple[tuple[ReservoirId, MemoryChange], ...]] = field(default_factory=dict)
    hosts: tuple[Reservoir, ...] = ()
    numbers: Mapping[PassType, range] = field(default_factory=dict)
    blocks: Mapping[tuple[StageId, StageId], Ticks] = field(default_factory=dict)
    scale: tuple[Fraction, ...] = ()
    device_of: tuple[DeviceId, ...] = ()
    until_end: Mapping[PassType, MemorySteps] = field(default_factory=dict)

    def drop(
        self,
        passes: Collection[PassType] = (),
        leading: Mapping[PassType, int] = MappingProxyType({}),
        arcs: Callable[[Arc], bool] = lambda _: False,
        limits: Collection[DeviceId] = (),
        further_resources: bool = False,
    ) -> TaskNetwork:
        """Return a relaxation without these passes, first tasks of some passes, some arcs, and devices' memory limits.

        `leading` is the number of first tasks to drop by type of pass, `arcs` is True for arcs to drop, and `limits`
        are devices whose memory becomes unlimited. With `further_resources` each task occupies its first resource only.

        Every schedule of this network, without what is dropped and with all else at its time, is a schedule of the
        relaxed one: no two tasks overlap on a resource, each remaining arc binds remaining tasks, and no memory level
        is higher. A pass that begins with a later task takes its memory later; dropped passes take no memory, or take
        all that they free, before they free it. The schedule ends no later, and no device works longer from its first
        task to its last. So no lower bound of the relaxed network is above the optimum of this one.

        `ValueError` where a dropped pass changes any memory, unless a stage's gathering and drop are dropped together,
        and where a task that ends a pass would be dropped.
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
        most = 1 if further_resources else None
        return replace(
            self,
            tasks={
                of: tuple(
                    task._replace(resources=task.resources[:most]) for task in self.tasks[of][leading.get(of, 0) :]
                )
                for of in kept
            },
            ends={of: tuple(part - leading.get(of, 0) for part in self.ends[of]) for of in kept},
            change={of: self.change[of] for of in kept},
            arcs=tuple(left),
            room=tuple(None if device in limits else room for device, room in enumerate(self.room)),
            numbers={of: self.numbers[of] for of in kept},
            blocks={(f, b): ticks for (f, b), ticks in self.blocks.items() if not gone & {(F, f), (BW, b)}},
            until_end={of: self.until_end[of] for of in kept if of in self.until_end},
        )

    @cached_property
    def of_microbatches(self) -> TaskNetwork:
        """Return the network without the passes that run for the parameters of stages."""
        return self.drop(passes=[of for of in self.tasks if of[0] in OF_PARAMETERS])

    def _refuse_what_holds(self, passes: frozenset[PassType], leading: Mapping[PassType, int]) -> None:
        """Raise `ValueError` if a dropped pass changes any memory, or a task that ends a pass would be dropped.

        A stage's gathering and drop of parameters may be dropped together. `leading` is the number of first tasks to
        drop, by type of pass.
        """
        for kind, stage in passes:
            together = (UNSHARD, stage), (RESHARD, stage)
            given = self.change[kind, stage] != MemoryChange(0, 0) or (kind, stage) in self.elsewhere
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
    def begins(self) -> Mapping[PassType, tuple[TaskPart, ...]]:
        """The indices of the tasks of each type of pass that wait for no other task of the same pass."""
        found = dict[PassType, tuple[int, ...]]()
        for pass_type, tasks in self.tasks.items():
            own = [arc for arc in self.arcs_into[pass_type] if arc.share is None]
            later = {arc.after.part for arc in own if any(one.pass_type == pass_type for one in arc.alternatives)}
            found[pass_type] = tuple(part for part in range(len(tasks)) if part not in later)
        return found

    @cached_property
    def arcs_from(self) -> Mapping[TaskType, tuple[Arc, ...]]:
        """The arcs that wait for each task, as their only predecessor or as one of the alternatives."""
        found: dict[TaskType, list[Arc]] = {
            TaskType(*of, part): [] for of, tasks in self.tasks.items() for part in range(len(tasks))
        }
        for arc in self.arcs:
            for task in arc.alternatives:
                found[task].append(arc)
        return {task: tuple(arcs) for task, arcs in found.items()}

    @cached_property
    def needs(self) -> Mapping[PassType, tuple[Need, ...]]:
        """The precedences between whole passes, by type of the pass that waits.

        For readers that see a pass as one box, without tasks that send tensors. Where passes have several tasks, a pass
        may start earlier than these needs allow; an order of passes that satisfies them can be run.
        """
        return {
            after: tuple(
                dict.fromkeys(self._need(arc) for arc in arcs if arc.share or arc.alternatives[0].pass_type != after)
            )
            for after, arcs in self.arcs_into.items()
        }

    def _need(self, arc: Arc) -> Need:
        """Convert an arc to a precedence between whole passes.

        Ticks of a task that sends the tensor become part of the lag.
        """
        sender = arc.alternatives[0]
        sending = self.tasks[sender.pass_type][self.ends[sender.pass_type][-1] + 1 : sender.part + 1]
        lag = arc.lag + sum(task.ticks for task in sending)
        return Need(tuple(task.pass_type for task in arc.alternatives), lag, arc.optional, arc.share)

    def predecessors(self, p: Pass, present: Container[Pass]) -> Iterator[tuple[Pass, Ticks]]:
        """Yield the passes that `p` waits for, as pairs (pass, lag in ticks before the micro-batch's factor).

        Of several alternatives the one in `present` is yielded. If none of them is present it is the first one, or
        nothing where the need is optional.
        """
        for alternatives, lag, optional, share, _ in self.needs[p[:2]]:
            for j in (p.microbatch,) if share is None else share.numbers(p.microbatch):
                passes = [Pass(kind, stage, j) for kind, stage in alternatives]
                found = next((other for other in passes if other in present), None if optional else passes[0])
                if found is not None:
                    yield found, lag

    @cached_property
    def backwards(self) -> tuple[tuple[PassKind, ...], ...]:
        """Return the kinds of passes of a backward in each mode allowed.

        These are (B, W) if split, and (BW) if fused, split first.
        """
        of = {Mode.SPLIT: (B, W), Mode.FUSED: (BW,)}
        return tuple(kinds for mode, kinds in of.items() if mode in self.modes)

    @property
    def gradient(self) -> PassKind:
        """Return the kind of pass that computes the input's gradient: B where backwards may be split, else BW."""
        return self.backwards[0][0]

    @property
    def has_activation_modes(self) -> bool:
        """Return True if some activation may be offloaded or recomputed.

        Then a schedule decides which passes run.
        """
        return bool(self.options)

    @cached_property
    def reservoirs(self) -> tuple[Reservoir, ...]:
        """Return every memory that passes use, with all devices whose passes take from it.

        First come those of devices, then those of hosts.
        """
        users = [{device} for device in range(len(self.room))]
        for (_, stage), changes in self.elsewhere.items():
            for number, _ in changes:
                if number < len(users):
                    users[number].add(self.device_of[stage])
        own = (Reservoir(room, tuple(sorted(devices))) for room, devices in zip(self.room, users, strict=True))
        return (*own, *self.hosts)

    def changes(self, pass_type: PassType) -> tuple[tuple[ReservoirId, MemoryChange], ...]:
        """Return the memories that a pass changes as (index in `reservoirs`, change), that of its own device first."""
        own = self.device_of[pass_type[1]], self.change[pass_type]
        return own, *self.elsewhere.get(pass_type, ())

    def changes_of_others(self, reservoir: ReservoirId) -> Mapping[PassType, MemoryChange]:
        """Return by type of pass the changes of a memory that is not of the pass's own device.

        `reservoir` is an index in `reservoirs`.
        """
        return {
            of: change for of, changes in self.elsewhere.items() for number, change in changes if number == reservoir
        }

    def mode_passes_taking(self, reservoir: ReservoirId) -> tuple[PassType, ...]:
        """Return the types of copies and recomputations that take memory of a reservoir, an index in `reservoirs`.

        For a device these are the passes of its stages, and the copies by which other devices move activations to it.
        Where there are any, its memory level may rise without a forward or backward of the device.
        """
        return tuple(
            of
            for of in self.tasks
            if of[0] in SAVING and len(self.numbers[of])
            for number, change in self.changes(of)
            if number == reservoir and change.at_start > 0
        )

    @cached_property
    def memory_in_flight(self) -> tuple[MemorySteps, ...]:
        """Return by stage the memory of one micro-batch from the start of F to the end of its backward, in steps.

        It includes what F takes for the backward of another stage (`Stage.kv_cache`), and neither workspace nor what is
        kept until the end of the iteration.
        """
        return tuple(self._taken_for_later((kind, s)) for kind, s in self.change if kind is F)

    @cached_property
    def memory_until_weight(self) -> tuple[MemorySteps, ...]:
        """Return by stage the memory of one micro-batch from the end of B to the end of W, in steps.

        0 if never split.
        """
        stages = range(len(self.memory_in_flight))
        return tuple(-self._taken_for_later((W, s)) if (W, s) in self.change else 0 for s in stages)

    def _taken_for_later(self, of: PassType) -> MemorySteps:
        """Return the memory that a pass takes and a later pass frees.

        Negative where it frees memory that an earlier pass took.
        """
        return self.change[of].total - self.until_end.get(of, 0)

    @cached_property
    def memory_until_last(self) -> tuple[MemorySteps, ...]:
        """Return by stage the memory, in steps, that the last pass of a micro-batch's backward frees.

        That pass is W where backwards may be split, else BW.
        """
        last = self.backwards[0][-1]
        return tuple(-self._taken_for_later((last, s)) for s in range(len(self.memory_in_flight)))

    @cached_property
    def freed_by_backward(self) -> tuple[MemorySteps, ...]:
        """Return by stage `memory_in_flight` less `memory_until_weight`; negative where B takes more than it frees.

        That is what B frees, or where backwards are never split what BW does, if stages lend each other no memory.
        """
        return tuple(
            whole - until_weight
            for whole, until_weight in zip(self.memory_in_flight, self.memory_until_weight, strict=True)
        )

    @cached_property
    def backward_takes_memory(self) -> bool:
        """Return True if B takes memory on some stage, as in autograd's split backward."""
        return any(change.at_start > 0 for (kind, _), change in self.change.items() if kind is B)

    @cached_property
    def has_pass_memory(self) -> bool:
        """Return True if some pass has workspace, or keeps memory until the end of the iteration.

        The network shows that by an F that frees memory at its end, or a W or BW that takes some.
        """
        changes = self.change.items()
        return bool(self.until_end) or any(
            one.at_end < 0 if kind is F else one.at_start > 0 for (kind, _), one in changes if kind in (F, W, BW)
        )

    @cached_property
    def one_task_each(self) -> bool:
        """Return True if every pass is a single task, always runs, and waits only for passes of its own micro-batch.

        All tasks of a device then run on one stream, and chains share nothing but devices and memory.
        """
        devices = {resource.device for resource in self.resources}
        return (
            self.has_plain_chains
            and all(len(tasks) == 1 for tasks in self.tasks.values())
            and not self.occupies_several
            and len(self.resources) == len(devices)
        )

    @property
    def has_plain_chains(self) -> bool:
        """Return True if every pass, of one task or several, always runs and waits only for its own micro-batch."""
        return not (self.options or self.has_collectives or self.has_arcs_between_chains)

    @cached_property
    def has_arcs_between_chains(self) -> bool:
        """Return True if a pass of some micro-batch waits for passes of other micro-batches."""
        return any(arc.share is not None and arc.after.kind not in OF_PARAMETERS for arc in self.arcs)

    @cached_property
    def has_collectives(self) -> bool:
        """Return True if some pass runs for the parameters of a stage."""
        return any(kind in OF_PARAMETERS for kind, _ in self.tasks)

    @property
    def multi_task_feature(self) -> str:
        """Return the name, for messages, of the feature that makes `one_task_each` False; only where it is False."""
        if self.options:
            return "offload or recomputation"
        if self.has_collectives:
            return "collectives of stages"
        return "pieces or modules" if self.has_arcs_between_chains else "passes of several tasks"

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Return every resource that some task occupies, ascending."""
        return tuple(sorted({one for tasks in self.tasks.values() for task in tasks for one in task.resources}))

    @cached_property
    def occupies_several(self) -> bool:
        """Return True if some task occupies several resources at once, such as a blocking transfer."""
        return any(len(task.resources) > 1 for tasks in self.tasks.values() for task in tasks)
