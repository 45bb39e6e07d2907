"""A stage: what the passes of one stage cost, in ticks, and hold, in the memory's integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

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

# The stream that runs what names no other.
COMPUTE = "compute"


class TaskSpec(NamedTuple):
    """One task of a pass: the stream it occupies, for how many ticks, and what it is called.

    The tasks of F, B and BW run one after the other. Those of W run each on its own, once part `after` of their
    micro-batch's B has ended, or all of B where it is None. Without `needs_input` a task at the beginning of F, B or BW
    waits for no other pass, such as a lookup in a table of embeddings. One that `gathers` brings the parameters.
    """

    stream: str
    ticks: int
    name: str = ""
    after: int | None = None
    needs_input: bool = True
    gathers: bool = False


class PassMemory(NamedTuple):
    """Amounts of memory for a forward, a backward (B, or all of BW) and a W. Those of BW cover its W too."""

    forward: int = 0
    backward: int = 0
    weight: int = 0

    def workspace(self, kind: PassKind) -> int:
        """Memory that a pass needs only while it runs; a BW never runs B and W at once."""
        both = max(self.backward, self.weight)
        return {F: self.forward, B: self.backward, W: self.weight, BW: both}.get(kind, 0)

    def until_end(self, kind: PassKind) -> int:
        """Taken by a pass and never given back."""
        return {F: self.forward, B: self.backward, W: self.weight, BW: self.backward + self.weight}.get(kind, 0)


class Gather(NamedTuple):
    """Gathering a stage's parameters: its task, what they hold while they are there, and how often it may be done."""

    task: TaskSpec
    memory: int
    most: int


class Once(NamedTuple):
    """A pass that a stage runs after its backwards: its task, as often in turn as it has parts.

    With `each_microbatch` there is one after the backward of every micro-batch, instead of one after all of them.
    """

    kind: PassKind
    task: TaskSpec
    parts: int = 1
    each_microbatch: bool = False


_NO_MEMORY = PassMemory()


@dataclass(frozen=True)
class Stage:
    """Durations of a stage's passes, and the memory that each of its micro-batches takes.

    Without `weight` the backward cannot be split: `backward` and `fused` are then the same, full backward. `overlapped`
    is one block of this stage's forward and a full backward run together. A tensor from this stage to the next, or its
    gradient back, takes `transfer` ticks in addition to those of the link, between two devices only.

    F takes `activation` when it starts. B gives back `freed` when it ends, W the remainder when it ends, BW all of it.
    A negative `freed` is taken when B starts (autograd's split backward keeps more, not less). `static` is in use at
    all times (weights, gradients, optimizer). `stream` runs the tasks that name no other. `tasks` lists the tasks of
    those passes that are not one task on it; their durations are then those of the tasks.

    F takes `lent` besides, which its own backward does not give back: that of another stage of the device does, which
    gives back `collected` besides when it ends as B or BW. Each pass takes its `workspace` while it runs, and takes
    when it starts its part of `until_end`, which stays until the end of the iteration.

    A stage that is `forward_only` is before all that trains: its backwards take no time, and no gradient is sent to it.

    From F to the backward an activation is kept if the stage `may_keep` it, or moves to the host where there is
    `offload`, or is computed again on `stream` by one of `recompute`.

    After the last backward of all micro-batches it runs the passes `once`, one after the other; of the first one each
    part begins when its share of the weights' gradients is there. Where there is `gather`, its passes run only while
    its parameters are gathered: they are dropped, on `stream` and in no time, and gathered again, as a schedule says.
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
    stream: str = COMPUTE
    offload: Offload | None = None
    recompute: tuple[Recomputation, ...] = ()
    may_keep: bool = True
    lent: int = 0
    collected: int = 0
    workspace: PassMemory = _NO_MEMORY
    until_end: PassMemory = _NO_MEMORY
    once: tuple[Once, ...] = ()
    gather: Gather | None = None
    forward_only: bool = False

    @property
    def kinds(self) -> tuple[PassKind, ...]:
        """The kinds of passes that this stage may run."""
        return (
            *((F, BW) if self.weight is None else (F, B, W, BW)),
            *self.saving_kinds,
            *self.kinds_of_parameters,
        )

    @property
    def kinds_of_parameters(self) -> tuple[PassKind, ...]:
        """The kinds of passes for its parameters: what gathers and drops them, and what it runs once."""
        return (*(() if self.gather is None else (UNSHARD, RESHARD)), *self.kinds_once)

    @property
    def kinds_once(self) -> tuple[PassKind, ...]:
        """The kinds of passes that this stage runs once, after all its backwards, in their order."""
        return tuple(one.kind for one in self.once)

    @property
    def saving_kinds(self) -> tuple[PassKind, ...]:
        """The kinds of passes by which this stage holds less of an activation until its backward."""
        return (*((OFFLOAD, RELOAD) if self.offload else ()), *RECOMPUTATIONS[: len(self.recompute)])

    @property
    def held_until_backward(self) -> dict[PassKind | None, tuple[int, int]]:
        """Memory that stays on the device and that moves to the host, by mode: None keeps all; O; a recomputation."""
        found: dict[PassKind | None, tuple[int, int]] = {None: (self.activation, 0)} if self.may_keep else {}
        if self.offload:
            found[OFFLOAD] = self.activation - self.offload.amount, self.offload.amount
        for kind, way in zip(RECOMPUTATIONS, self.recompute, strict=False):
            found[kind] = way.keeps, 0
        return found

    def with_tasks(self, tasks: Mapping[PassKind, tuple[TaskSpec, ...]]) -> Stage:
        """The stage whose passes of these kinds are made of these tasks, and take as many ticks as they do together."""
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
        """The tasks of a pass of this stage, without what sends its tensor on."""
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
            way = self.recompute[RECOMPUTATIONS.index(kind)]
            return (TaskSpec(self.stream, way.ticks, way.name),)
        ticks = {F: self.forward, B: self.backward, W: self.weight, BW: self.fused}[kind]
        assert ticks is not None, "this stage's backward is never split"
        return (TaskSpec(self.stream, ticks),)

    def _of_parameters(self, kind: PassKind) -> TaskSpec:
        dropping = None if self.gather is None else TaskSpec(self.stream, 0)
        gathering = None if self.gather is None else self.gather.task
        own = {UNSHARD: gathering, RESHARD: dropping, **{one.kind: one.task for one in self.once}}.get(kind)
        assert own is not None, "this stage has no such pass"
        return own

    def entry(self, kind: PassKind) -> int:
        """The first task of an F, B or BW that waits for other passes."""
        return next((part for part, task in enumerate(self.tasks_of(kind)) if task.needs_input), 0)

    def ticks(self, kind: PassKind) -> int:
        """Ticks from a pass's start to its end when nothing interrupts it and it shares its slot with no other."""
        tasks = self.tasks_of(kind)
        if kind is not W or len(tasks) == 1:
            return sum(task.ticks for task in tasks)
        streams = {task.stream for task in tasks}
        return max(sum(task.ticks for task in tasks if task.stream == stream) for stream in streams)

    def compute_ticks(self, *kinds: PassKind) -> int:
        """Of the ticks of passes of these kinds, those on `stream`."""
        return sum(task.ticks for kind in kinds for task in self.tasks_of(kind) if task.stream == self.stream)
