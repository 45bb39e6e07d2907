"""Stages: durations of a stage's passes in ticks, and their memory in units of the resolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

from pipesched.problem.blocks import NO_BLOCKS, Blocks
from pipesched.problem.kv_cache import NO_KV_CACHE, KvCache
from pipesched.problem.memory_options import Offload, Recomputation
from pipesched.problem.passes import (
    BW,
    OF_PARAMETERS,
    OFFLOAD,
    RECOMPUTATIONS,
    RELOAD,
    RESHARD,
    UNSHARD,
    B,
    F,
    PassKind,
    W,
)
from pipesched.problem.quantities import MemorySteps, TaskPart, Ticks
from pipesched.problem.resource import Resource

# The stream that runs what names no other.
COMPUTE = "compute"


class TaskSpec(NamedTuple):
    """One task of a pass: the stream it occupies, its ticks, and its name.

    The tasks of F, B and BW run one after the other. Those of W are independent: each runs once part `after` of its
    micro-batch's B has ended, or all of B if that is None. Without `needs_input` a task at the beginning of F, B or BW
    waits for no other pass, such as a lookup in an embedding table. A task that `gathers` collects the stage's
    parameters; one that `receives` takes the tensor of the neighbouring stage and waits for that stage's pass alone.

    From start to end a task occupies its stream and the streams `also`, each given with its device. Two makers set
    them: `rendezvous.with_receipts` for a blocking transfer, of the receiving pass and also on the sender's stream, and
    `gradient_norm.with_norm`. The network has them as resources of the task (`features/device_resources.py`); the
    validator, which does not read the network, and the check of bounds read `also` itself.
    """

    stream: str
    ticks: Ticks
    name: str = ""
    after: TaskPart | None = None
    needs_input: bool = True
    gathers: bool = False
    receives: bool = False
    also: tuple[Resource, ...] = ()


class PassMemory(NamedTuple):
    """Memory of the passes of a stage, in steps: of F (`forward`), B (`backward`) and W (`weight`).

    The amounts are one of two things: workspace, which a pass needs while it runs, or memory that a pass takes and no
    pass frees until the end of the iteration. The two differ in what a BW takes, by the methods of these names.
    """

    forward: MemorySteps = 0
    backward: MemorySteps = 0
    weight: MemorySteps = 0

    def workspace(self, kind: PassKind) -> MemorySteps:
        """Return the memory that a pass of this kind needs while it runs.

        BW needs the larger of the amounts of B and W. For amounts that are workspace.
        """
        both = max(self.backward, self.weight)
        return {F: self.forward, B: self.backward, W: self.weight, BW: both}.get(kind, 0)

    def until_end(self, kind: PassKind) -> MemorySteps:
        """Return the memory that a pass of this kind takes until the iteration's end; BW takes the sum of B and W.

        For amounts that are kept until the end of the iteration.
        """
        return {F: self.forward, B: self.backward, W: self.weight, BW: self.backward + self.weight}.get(kind, 0)


class Gather(NamedTuple):
    """The gathering of a stage's parameters.

    `task` gathers; `memory` is that of the gathered parameters, in steps. A stage gathers at most `most` times in an
    iteration.
    """

    task: TaskSpec
    memory: MemorySteps
    most: int


class Once(NamedTuple):
    """A pass that a stage runs after its backwards, such as a reduction of gradients.

    Its task runs `parts` times in a row. `task` is one of these parts. With `each_microbatch` one pass runs after every
    micro-batch's backward, instead of one after all of them. With `of_all` the pass of this stage serves all stages: it
    waits for what each of them runs once before it, in the order of kinds, and precedes what each of them runs after
    it.
    """

    kind: PassKind
    task: TaskSpec
    parts: int = 1
    each_microbatch: bool = False
    of_all: bool = False


_NO_MEMORY = PassMemory()


@dataclass(frozen=True)
class Stage:
    """Durations of a stage's passes, and the memory that each of its micro-batches takes.

    If `weight` is None the backward cannot be split: `backward` and `fused` are then the same, full backward. `blocks`
    has the durations of its blocks of a forward and a full backward. A tensor from this stage to the next, or its
    gradient back, takes `transfer` ticks in addition to those of the link, between two devices only.

    F takes `activation` when it starts. B frees `freed` when it ends, W the remainder when it ends, BW all of it. A
    negative `freed` is taken when B starts (autograd's split backward keeps more, not less). `static` is in use at all
    times (weights, gradients, optimizer). `stream` runs the tasks that name no other stream. `tasks` lists the tasks of
    passes that are not a single task on `stream`; their durations are then those of the tasks.

    F takes keys and values in addition, which the backward of another stage frees (`kv_cache`). Each pass takes its
    `workspace` while it runs, and at its start its part of `until_end`, which stays until the end of the iteration.

    A stage that is `forward_only` is before the first one that trains. It still has its backwards, which take no time,
    and it gets no gradient.

    From F to the backward an activation is kept if the stage `may_keep` it, or with `offload` moves to a host or
    another device and back (None: it never moves), or is recomputed on `stream` by one mode of `recompute`.

    After the backwards of all micro-batches the stage runs the passes `once`, one after the other; each part of the
    first one may begin once its share of the weights' gradients is complete (if it is `each_microbatch`, once those of
    one micro-batch are). With `gather`, passes run only while the stage's parameters are gathered; a schedule decides
    when they are dropped (on `stream`, in no time) and gathered again. Where it is None, no such decision is made.
    """

    forward: Ticks
    backward: Ticks
    weight: Ticks | None
    fused: Ticks
    transfer: Ticks = 0
    blocks: Blocks = NO_BLOCKS
    activation: MemorySteps = 1
    freed: MemorySteps = 0
    static: MemorySteps = 0
    tasks: tuple[tuple[PassKind, tuple[TaskSpec, ...]], ...] = ()
    stream: str = COMPUTE
    offload: Offload | None = None
    recompute: tuple[Recomputation, ...] = ()
    may_keep: bool = True
    kv_cache: KvCache = NO_KV_CACHE
    workspace: PassMemory = _NO_MEMORY
    until_end: PassMemory = _NO_MEMORY
    once: tuple[Once, ...] = ()
    gather: Gather | None = None
    forward_only: bool = False

    @property
    def kinds(self) -> tuple[PassKind, ...]:
        """The kinds of passes that it may run: F, B, W, BW (or F, BW), then `saving_kinds`, `kinds_of_parameters`."""
        return (
            *((F, BW) if self.weight is None else (F, B, W, BW)),
            *self.saving_kinds,
            *self.kinds_of_parameters,
        )

    @property
    def in_blocks(self) -> bool:
        """True if its forward may run as one block with a full backward."""
        return self.blocks != NO_BLOCKS

    def block_with(self, backward: Stage) -> Ticks | None:
        """Return the ticks of one block of this stage's forward and a full backward of the stage `backward`.

        None if the two cannot run as one block.
        """
        (ticks, saves), other = self.blocks, backward.blocks.saves
        if ticks is not None or saves is None or other is None:
            return ticks
        return self.forward + backward.fused - min(saves, other)

    @property
    def kinds_of_parameters(self) -> tuple[PassKind, ...]:
        """The kinds of passes for its parameters: gathering, dropping, and those that run once."""
        return (*(() if self.gather is None else (UNSHARD, RESHARD)), *self.kinds_once)

    @property
    def kinds_once(self) -> tuple[PassKind, ...]:
        """The kinds of the passes in `once`, in their order."""
        return tuple(one.kind for one in self.once)

    @property
    def saving_kinds(self) -> tuple[PassKind, ...]:
        """The kinds of passes by which this stage may keep less of an activation on its device; empty without any.

        With `offload` they are the copy out, to the host or another device, and the copy back. Then there is one kind
        for each entry of `recompute`.
        """
        return (*((OFFLOAD, RELOAD) if self.offload else ()), *RECOMPUTATIONS[: len(self.recompute)])

    @property
    def memory_until_backward(self) -> dict[PassKind | None, tuple[MemorySteps, MemorySteps]]:
        """Return by activation mode (memory that stays on the device, memory that moves to another or a host).

        The modes are None (kept), OFFLOAD, and each kind of recomputation, as far as the stage allows them.
        """
        found: dict[PassKind | None, tuple[int, int]] = {None: (self.activation, 0)} if self.may_keep else {}
        if self.offload:
            found[OFFLOAD] = self.activation - self.offload.amount, self.offload.amount
        for kind, mode in zip(RECOMPUTATIONS, self.recompute, strict=False):
            found[kind] = mode.keeps, 0
        return found

    def with_tasks(self, tasks: Mapping[PassKind, tuple[TaskSpec, ...]]) -> Stage:
        """Return the stage whose passes of these kinds are made of `tasks`, in place of all tasks that it had.

        F, B and BW take the sum of their tasks' ticks if they are among these kinds, else what they took; without
        `weight`, B takes what BW does. `weight`, the duration of W, does not change. Tasks of other kinds are ignored.
        """
        ticks = {kind: sum(task.ticks for task in own) for kind, own in tasks.items()}
        whole = ticks.get(BW, self.fused)
        return replace(
            self,
            forward=ticks.get(F, self.forward),
            backward=whole if self.weight is None else ticks.get(B, self.backward),
            fused=whole,
            tasks=tuple((kind, tasks[kind]) for kind in (F, B, W, BW) if kind in tasks),
        )

    def tasks_of(self, kind: PassKind) -> tuple[TaskSpec, ...]:
        """Return the tasks of a kind of pass in `kinds`, in order, without the task that sends its tensor."""
        known = self._known_tasks
        if kind not in known:
            known[kind] = self._tasks_of(kind)
        return known[kind]

    @cached_property
    def _known_tasks(self) -> dict[PassKind, tuple[TaskSpec, ...]]:
        return {}

    @property
    def tasks_by_kind(self) -> Mapping[PassKind, tuple[TaskSpec, ...]]:
        """The tasks, as `tasks_of` returns them, of every kind of pass that this stage may run."""
        return {kind: self.tasks_of(kind) for kind in self.kinds}

    def _tasks_of(self, kind: PassKind) -> tuple[TaskSpec, ...]:
        for given, tasks in self.tasks:
            if given is kind:
                return tasks
        if kind in OF_PARAMETERS:
            return (self._of_parameters(kind),)
        if kind in (OFFLOAD, RELOAD):
            assert self.offload is not None, "this stage never offloads"
            own = self.offload
            return (TaskSpec(*((own.out_stream, own.out_ticks) if kind is OFFLOAD else (own.in_stream, own.in_ticks))),)
        if kind in RECOMPUTATIONS:
            mode = self.recompute[RECOMPUTATIONS.index(kind)]
            return (TaskSpec(self.stream, mode.ticks, mode.name),)
        ticks = {F: self.forward, B: self.backward, W: self.weight, BW: self.fused}[kind]
        assert ticks is not None, "this stage's backward is never split"
        return (TaskSpec(self.stream, ticks),)

    def tasks_after_receipt(self, kind: PassKind) -> tuple[TaskSpec, ...]:
        """Return the tasks of a kind of pass, as `tasks_of`, without a first task that receives the tensor.

        In the tasks of W, the indices `after` are then those of the tasks of B without its receipt.
        """
        tasks, backward = self.tasks_of(kind), self.tasks_of(B) if kind is W else ()
        if kind is W and backward[0].receives:
            return tuple(task if task.after is None else task._replace(after=task.after - 1) for task in tasks)
        return tasks[1:] if tasks[0].receives else tasks

    def _of_parameters(self, kind: PassKind) -> TaskSpec:
        dropping = None if self.gather is None else TaskSpec(self.stream, 0)
        gathering = None if self.gather is None else self.gather.task
        own = {UNSHARD: gathering, RESHARD: dropping, **{one.kind: one.task for one in self.once}}.get(kind)
        assert own is not None, "this stage has no such pass"
        return own

    def entry(self, kind: PassKind) -> TaskPart:
        """Return the index of the first task of an F, B or BW that waits for other passes.

        0 if none of its tasks does.
        """
        return entry_of(self.tasks_of(kind))

    def ticks(self, kind: PassKind) -> Ticks:
        """Return the ticks from a pass's start to its end if nothing interrupts it and it is not in a block."""
        tasks = self.tasks_of(kind)
        if kind is not W or len(tasks) == 1:
            return sum(task.ticks for task in tasks)
        streams = {task.stream for task in tasks}
        return max(sum(task.ticks for task in tasks if task.stream == stream) for stream in streams)

    def compute_ticks(self, *kinds: PassKind) -> Ticks:
        """Return the ticks that passes of these kinds spend on `stream`."""
        return sum(task.ticks for kind in kinds for task in self.tasks_of(kind) if task.stream == self.stream)


def entry_of(tasks: Sequence[TaskSpec]) -> TaskPart:
    """Return the index of the first task of an F, B or BW that waits for other passes; 0 if none of its tasks does."""
    return next((part for part, task in enumerate(tasks) if task.needs_input), 0)


class Receiver(Protocol):
    """A stage that may receive gradients, of a problem or of a file."""

    @property
    def forward_only(self) -> bool:
        """True if the stage is before the first one that trains and gets no gradient."""


def gradient_lag(receiver: Receiver, ticks: Ticks) -> Ticks:
    """Return the ticks until a gradient arrives at `receiver`: `ticks`, or 0 if none is sent to it."""
    return 0 if receiver.forward_only else ticks
