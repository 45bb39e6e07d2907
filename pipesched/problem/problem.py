"""The problem: stages on devices, links, memory, micro-batches and objective, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from pipesched.html_of import html_of
from pipesched.problem.blocks import NO_BLOCKS
from pipesched.problem.features.chain_arcs import NO_ARCS, ChainArcs
from pipesched.problem.features.device_resources import ONE_STREAM, DeviceResources, Pool
from pipesched.problem.features.parameters import OWN_PARAMETERS, StageParameters
from pipesched.problem.features.walks import ALIKE, Walks
from pipesched.problem.lowering.dependencies import Dependencies
from pipesched.problem.lowering.network_of_problem import network_of
from pipesched.problem.network.task_network import Mode, PassType, TaskNetwork
from pipesched.problem.objective import Objective as Objective  # noqa: PLC0414 - who reads a problem names its objective
from pipesched.problem.objectives.makespan import MAKESPAN
from pipesched.problem.pass_names import microbatches_text, pass_text
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Task, W
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import DeviceId, MemorySteps, MicrobatchId, StageId, Ticks
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.problem.units import WHOLE, Units
from pipesched.problem.view import PipelineView, is_pipeline, pipeline_of


@dataclass(frozen=True, repr=False)
class Problem:
    """All data of one pipeline iteration to schedule, of `microbatches` micro-batches.

    Pieces of micro-batches and passes of modules are included in that number. Times are integer ticks, memory integer
    steps; `units` has their sizes.

    `stages[s]` has the times and memory of stage s, `pools[d]` the memory of device d (unlimited on all if none are
    given). `links[a][b]` is the time of a transfer from device a to device b, in addition to the stage's own; empty
    where only stages have such times. `resources` are hosts, and streams other than the compute stream.

    `walks` are the micro-batches of each chain with their order and factors, `chain_arcs` the precedences between
    chains, `parameters` the stages that share parameters, and limits of gathering them. `notes` are sentences for the
    user on how the file was read.

    `BadInput` for factors of micro-batches that do not fit the problem (`Walks.refuse`), `ValueError` for blocks
    together with transfers on a stream.
    """

    placement: Placement
    microbatches: int
    stages: tuple[Stage, ...]
    pools: tuple[Pool, ...] = ()
    objective: Objective = MAKESPAN
    name: str = "problem"
    units: Units = WHOLE
    links: tuple[tuple[Ticks, ...], ...] = ()
    resources: DeviceResources = ONE_STREAM
    walks: Walks = ALIKE
    chain_arcs: ChainArcs = NO_ARCS
    parameters: StageParameters = OWN_PARAMETERS
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.pools:
            object.__setattr__(self, "pools", (Pool(),) * self.placement.devices)
        if self.walks.scale:
            self.walks.refuse(self.microbatches, self.stages, self.links)
        if self.resources.transfer_stream is not None and self.overlaps:
            raise ValueError("blocks of two passes, and transfers that occupy a stream: allowed is one of them")

    def __repr__(self) -> str:
        stages = self.placement.stages // self.chain_arcs.pieces
        where = f"{self.devices} devices, {stages} stages ({self.placement.name})"
        return f"<Problem {self.name!r}: {where}, {microbatches_text(self)}, minimise {self.objective.name}>"

    def _repr_html_(self) -> str | None:
        """Return a table of the problem's stages, for notebooks.

        None, which shows plain text, if no HTML is known for it.
        """
        return html_of(self)

    @property
    def devices(self) -> int:
        return self.placement.devices

    @property
    def time_unit(self) -> str:
        return self.units.time

    @property
    def tick(self) -> Fraction:
        return self.units.tick

    @property
    def memory_unit(self) -> str:
        return self.units.memory

    @property
    def resolution(self) -> Fraction:
        return self.units.resolution

    @property
    def splittable(self) -> bool:
        """True if a backward may run as B and a later W."""
        return self.stages[0].weight is not None

    @property
    def overlaps(self) -> bool:
        """True if a forward and a full backward may run as one block."""
        return any(stage.in_blocks for stage in self.stages)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The names of all streams, the same for every device; the first one runs the tasks that name no stream."""
        tasks = [task for tasks in self.dependencies.tasks.values() for task in tasks]
        further = (stream for task in tasks for _, stream in task.also)
        used = (*(task.stream for task in tasks), *further)
        return tuple(dict.fromkeys((self.stages[0].stream, *self.resources.streams, *used)))

    @cached_property
    def static(self) -> tuple[MemorySteps, ...]:
        """The memory that is in use on each device at all times, in steps of the resolution."""
        stages_of = self.placement.stages_of
        pools = zip(self.pools, stages_of, strict=True)
        return tuple(pool.static + sum(self.stages[s].static for s in on) for pool, on in pools)

    @cached_property
    def room(self) -> tuple[MemorySteps | None, ...]:
        """The memory that each device has left for activations, in steps of the resolution; None where unlimited.

        Negative where static memory alone exceeds the capacity.
        """
        pools = zip(self.pools, self.static, strict=True)
        return tuple(None if pool.capacity is None else pool.capacity - static for pool, static in pools)

    def with_room(self, room: Sequence[MemorySteps | None]) -> Problem:
        """Return the problem with `room[d]` of memory for the activations of device d (None: unlimited)."""
        whole = (None if own is None else own + static for own, static in zip(room, self.static, strict=True))
        pools = zip(self.pools, whole, strict=True)
        return replace(self, pools=tuple(Pool(capacity, pool.static) for pool, capacity in pools))

    def keeping_activations(self) -> Problem:
        """Return the problem in which every activation is kept; itself if no stage offloads or recomputes.

        It has no hosts and no shared streams, which are of copies alone.
        """
        if not any(stage.saving_kinds for stage in self.stages):
            return self
        stages = tuple(replace(stage, offload=None, recompute=(), may_keep=True) for stage in self.stages)
        return replace(self, stages=stages, resources=replace(self.resources, shared_streams=(), hosts=()))

    def without_blocks(self) -> Problem:
        """Return the problem in which no two passes run as one block."""
        return self.with_stages(blocks=[NO_BLOCKS] * len(self.stages)) if self.overlaps else self

    def with_stages(self, **columns: Sequence[object]) -> Problem:
        """Return the problem with other values in some fields of its stages.

        For each field named, a sequence with an entry by stage.
        """
        entries = zip(self.stages, *columns.values(), strict=True)
        return replace(self, stages=tuple(replace(s, **dict(zip(columns, new, strict=True))) for s, *new in entries))

    @cached_property
    def dependencies(self) -> Dependencies:
        """The tasks of every kind of pass on every stage, and the passes that each waits for."""
        between = self.chain_arcs, self.microbatches_of, self.parameters
        return Dependencies(self.placement, self.stages, self.links, self.resources, *between)

    @cached_property
    def network(self) -> TaskNetwork:
        """The task network of one iteration, with every mode in which backwards may run."""
        modes = frozenset(Mode) if self.splittable else frozenset((Mode.FUSED,))
        return network_of(self.dependencies, modes, self.room, self.walks.scale)

    @cached_property
    def pipeline(self) -> PipelineView:
        """The forwards and backwards of the task network as a plain pipeline, each pass as one box.

        All else is left out.
        """
        return pipeline_of(self.network)

    @property
    def view(self) -> PipelineView | None:
        """The task network as a plain pipeline; None where it has more than plain passes of equal micro-batches."""
        return self.pipeline if is_pipeline(self.network) else None

    @cached_property
    def walking(self) -> tuple[range, ...]:
        """The micro-batches of each chain, by `ChainId`."""
        return self.placement.walks(self.microbatches, self.walks.shares)

    def chain_of(self, microbatch: MicrobatchId) -> tuple[StageId, ...]:
        """Return the stages of a micro-batch's chain, in the order of its forwards."""
        return next(
            chain for chain, walk in zip(self.placement.chains, self.walking, strict=True) if microbatch in walk
        )

    @cached_property
    def microbatches_of(self) -> tuple[range, ...]:
        """The micro-batches that go through each stage."""
        return tuple(self.walking[n] for n in self.placement.chain_index)

    @cached_property
    def queue_of(self) -> tuple[int, ...]:
        """The number of the queue of each stage; in a queue forwards, and backwards, run in micro-batch order.

        Only stages that are copies of one, for different micro-batches, share a number. Where any order is allowed,
        each stage has a number of its own, and equal micro-batches may be renumbered to keep the order on it.
        """
        return self.walks.queues or tuple(range(self.placement.stages))

    def scaled(self, number: Ticks | MemorySteps, microbatch: MicrobatchId) -> Ticks | MemorySteps:
        """Return `number`, ticks or memory of a stage, times the factor of a micro-batch."""
        return self.walks.scaled(number, microbatch)

    @cached_property
    def _ticks(self) -> dict[PassType, Ticks]:
        return {(kind, s): stage.ticks(kind) for s, stage in enumerate(self.stages) for kind in stage.kinds}

    def duration(self, p: Pass) -> Ticks:
        """Return the ticks from a pass's start to its end if nothing interrupts it and it is not in a block."""
        return self.scaled(self._ticks[p.kind, p.stage], p.microbatch)

    def lag(self, sender: StageId, receiver: StageId) -> Ticks:
        """Return the ticks from a pass's end to the arrival of its tensor at a neighbouring stage on the chain.

        The tensor is an activation if `receiver` follows `sender` on the chain, else a gradient. The micro-batch's
        factor is 1.
        """
        return self.dependencies.lag(sender, receiver)

    def tasks_of(self, kind: PassKind, stage: StageId) -> tuple[TaskSpec, ...]:
        """Return the tasks of a kind of pass on a stage, in order.

        The task that sends its tensor is last, if there is one. Ticks are those of a micro-batch of factor 1.
        """
        return self.dependencies.tasks[kind, stage]

    def tasks(self, p: Pass) -> Iterator[tuple[Task, TaskSpec]]:
        """Yield a pass's tasks in order, with their specifications, whose ticks include the micro-batch's factor.

        Where transfers occupy a stream, the task that sends the pass's tensor is the last; the pass ends before it.
        """
        parts = self.dependencies.tasks[p.kind, p.stage]
        if self.walks.scale:
            parts = tuple(part._replace(ticks=self.scaled(part.ticks, p.microbatch)) for part in parts)
        return ((Task(p, number), part) for number, part in enumerate(parts))

    def task_text(self, task: Task) -> str:
        """Return the name of a task, as `F0.0/attn`.

        Its index in the pass replaces a name that it lacks; a plain pass's task is `F0.0`.
        """
        tasks = self.dependencies.tasks.get((task.of.kind, task.of.stage), ())
        name = tasks[task.part].name if task.part < len(tasks) else ""
        of, part = pass_text(self, task.of), name or (str(task.part) if task.part else "")
        return f"{of}/{part}" if part else of

    def device(self, p: Pass) -> DeviceId:
        return self.placement.stage_device[p.stage]

    def devices_of(self, task: Task) -> tuple[DeviceId, ...]:
        """Return the devices of which a task occupies some stream, the device of its pass first."""
        own, further = self.device(task.of), self.dependencies.tasks[task.of.kind, task.of.stage][task.part].also
        return tuple(dict.fromkeys((own, *(one.device for one in further)))) if further else (own,)

    def overlapped_ticks(self, forward: Pass, backward: Pass) -> Ticks | None:
        """Return the ticks of a forward and a backward run as one block.

        None if they cannot, and then run one after the other: `forward` is no F or `backward` no BW, or the stages of
        the two have no such block. Devices and micro-batches are not compared.
        """
        if (forward.kind, backward.kind) != (F, BW):
            return None
        return self.stages[forward.stage].block_with(self.stages[backward.stage])

    def least_work(self, stage: StageId) -> Ticks:
        """Return the least compute ticks of a micro-batch's F and backward on a stage, split or fused, without blocks.

        Recomputation is not counted. The micro-batch's factor is 1.
        """
        return self.stages[stage].compute_ticks(F) + self.least_backward(stage)

    def least_backward(self, stage: StageId) -> Ticks:
        """Return the least compute ticks of one micro-batch's backward on a stage, split or fused, without blocks.

        The micro-batch's factor is 1.
        """
        whole = self.stages[stage].compute_ticks(BW)
        return min(whole, self.stages[stage].compute_ticks(B, W)) if self.splittable else whole

    def in_units(self, ticks: Ticks | Fraction) -> float:
        """Return ticks as a number in the file's time unit."""
        return float(ticks * self.tick)
