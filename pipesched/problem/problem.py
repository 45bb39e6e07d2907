"""A problem: stages on devices, links, memory, micro-batches, objective; all else is read off it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

from pipesched.html_of import html_of
from pipesched.problem.features.chain_arcs import NO_ARCS, ChainArcs
from pipesched.problem.features.device_resources import ONE_STREAM, DeviceResources, Pool
from pipesched.problem.features.parameters import OWN_PARAMETERS, StageParameters
from pipesched.problem.features.walks import ALIKE, Walks
from pipesched.problem.lowering.dependencies import Dependencies
from pipesched.problem.lowering.network_of_problem import network_of
from pipesched.problem.network.task_network import Mode, TaskNetwork
from pipesched.problem.objective import Objective as Objective  # noqa: PLC0414 - who reads a problem names its objective
from pipesched.problem.pass_names import microbatches_text, pass_text
from pipesched.problem.passes import BW, B, F, Pass, PassKind, Task, W
from pipesched.problem.placement import Placement
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.problem.units import WHOLE, Units
from pipesched.problem.view import PipelineView, is_pipeline, pipeline_of


@dataclass(frozen=True, repr=False)
class Problem:
    """All data of one pipeline iteration. Times are integer ticks, memory integers of steps, of `units`.

    `stages[s]` are the times and the memory of stage s, `pools[d]` the memory of device d. `links[a][b]` are the ticks
    that a tensor takes from device a to device b, in addition to those of its stage; empty where stages alone have such
    times. `resources` are hosts, and streams besides that of the passes.

    `walks` are the micro-batches of each chain, their order and their factors, `chain_arcs` the precedences between
    chains, `parameters` the stages that share parameters, and limits of gathering them.
    """

    placement: Placement
    microbatches: int
    stages: tuple[Stage, ...]
    pools: tuple[Pool, ...] = ()
    objective: Objective = Objective.MAKESPAN
    name: str = "problem"
    units: Units = WHOLE
    links: tuple[tuple[int, ...], ...] = ()
    resources: DeviceResources = ONE_STREAM
    walks: Walks = ALIKE
    chain_arcs: ChainArcs = NO_ARCS
    parameters: StageParameters = OWN_PARAMETERS
    notes: tuple[str, ...] = field(default=(), compare=False)  # what the user should know of how the file was read

    def __post_init__(self) -> None:
        if not self.pools:
            object.__setattr__(self, "pools", (Pool(),) * self.placement.devices)
        self.walks.refuse(self.microbatches, self.stages, self.links)
        if self.resources.transfer_stream is not None and self.overlaps:
            raise ValueError("blocks of two passes, and transfers that occupy a stream: allowed is one of them")

    def __repr__(self) -> str:
        stages = self.placement.stages // self.chain_arcs.pieces
        where = f"{self.devices} devices, {stages} stages ({self.placement.name})"
        return f"<Problem {self.name!r}: {where}, {microbatches_text(self)}, minimise {self.objective.value}>"

    def _repr_html_(self) -> str | None:
        """A table of its stages, for notebooks."""
        return html_of(self)

    @cached_property
    def content_key(self) -> str:
        """A hash of all that decides what the best schedule is; problems that differ only in their names share it."""
        place = self.placement.stage_device, self.placement.chains
        content = replace(self, name="", placement=Placement("", self.devices, *place), notes=())
        return sha256(repr([getattr(content, each.name) for each in fields(content)]).encode()).hexdigest()

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
        return any(stage.overlapped is not None for stage in self.stages)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The streams of every device; the first is that which runs what names no other."""
        used = (task.stream for tasks in self.dependencies.tasks.values() for task in tasks)
        return tuple(dict.fromkeys((self.stages[0].stream, *self.resources.streams, *used)))

    @cached_property
    def static(self) -> tuple[int, ...]:
        """Memory in use on each device at all times."""
        held = self.placement.stages_of
        pools = zip(self.pools, held, strict=True)
        return tuple(pool.static + sum(self.stages[s].static for s in on) for pool, on in pools)

    @cached_property
    def room(self) -> tuple[int | None, ...]:
        """Memory that each device has left for activations; None where it is unlimited."""
        pools = zip(self.pools, self.static, strict=True)
        return tuple(None if pool.capacity is None else pool.capacity - static for pool, static in pools)

    def with_room(self, room: Sequence[int | None]) -> Problem:
        """The same problem with so much left for the activations of each device."""
        whole = (None if own is None else own + static for own, static in zip(room, self.static, strict=True))
        pools = zip(self.pools, whole, strict=True)
        return replace(self, pools=tuple(Pool(capacity, pool.static) for pool, capacity in pools))

    def keeping_activations(self) -> Problem:
        """The same problem with every activation kept from forward to backward."""
        if not any(stage.saving_kinds for stage in self.stages):
            return self
        stages = tuple(replace(stage, offload=None, recompute=(), may_keep=True) for stage in self.stages)
        return replace(self, stages=stages, resources=replace(self.resources, shared_streams=(), hosts=()))

    def with_stages(self, **columns: Sequence[object]) -> Problem:
        """The problem with other values in fields of its stages: for each field a sequence, one entry a stage."""
        entries = zip(self.stages, *columns.values(), strict=True)
        return replace(self, stages=tuple(replace(s, **dict(zip(columns, new, strict=True))) for s, *new in entries))

    @cached_property
    def dependencies(self) -> Dependencies:
        """The tasks of every pass, and what each pass needs."""
        between = self.chain_arcs, self.microbatches_of, self.parameters
        return Dependencies(self.placement, self.stages, self.links, self.resources, *between)

    @cached_property
    def network(self) -> TaskNetwork:
        """The tasks of this problem, with every mode that its backwards may run in."""
        modes = frozenset(Mode) if self.splittable else frozenset((Mode.FUSED,))
        return network_of(self.dependencies, modes, self.room, self.walks.scale)

    @cached_property
    def pipeline(self) -> PipelineView:
        """The forwards and backwards of the network, each pass as one box."""
        return pipeline_of(self.network)

    @property
    def view(self) -> PipelineView | None:
        """The pipeline that the network is; None where it is more than plain passes of equal micro-batches."""
        return self.pipeline if is_pipeline(self.network) else None

    @cached_property
    def walking(self) -> tuple[range, ...]:
        """The micro-batches of each chain."""
        return self.walks.on_chains(self.microbatches, len(self.placement.chains))

    def chain_of(self, microbatch: int) -> tuple[int, ...]:
        """The stages of this micro-batch, first to last."""
        return next(
            chain for chain, walk in zip(self.placement.chains, self.walking, strict=True) if microbatch in walk
        )

    @cached_property
    def microbatches_of(self) -> tuple[range, ...]:
        """The micro-batches each stage sees."""
        return tuple(self.walking[n] for n in self.placement.chain_index)

    @cached_property
    def queue_of(self) -> tuple[int, ...]:
        """The queue of each stage; each has its own where any order may be."""
        return self.walks.queues or tuple(range(self.placement.stages))

    def scaled(self, number: int, microbatch: int) -> int:
        """Ticks or memory of a stage as they are for this micro-batch."""
        return self.walks.scaled(number, microbatch)

    @cached_property
    def _ticks(self) -> dict[tuple[PassKind, int], int]:
        return {(kind, s): stage.ticks(kind) for s, stage in enumerate(self.stages) for kind in stage.kinds}

    def duration(self, p: Pass) -> int:
        """Ticks from a pass's start to its end when nothing interrupts it and it shares its slot with no other."""
        return self.scaled(self._ticks[p.kind, p.stage], p.microbatch)

    def lag(self, sender: int, receiver: int) -> int:
        """Ticks from a pass's end to its tensor's arrival at a neighbour on the chain: activation, or gradient back."""
        return self.dependencies.lag(sender, receiver)

    def tasks_of(self, kind: PassKind, stage: int) -> tuple[TaskSpec, ...]:
        """The tasks of these passes, the one that sends the tensor on last, if there is one."""
        return self.dependencies.tasks[kind, stage]

    def tasks(self, p: Pass) -> Iterator[tuple[Task, TaskSpec]]:
        """The tasks of a pass with their numbers."""
        parts = self.dependencies.tasks[p.kind, p.stage]
        if self.walks.scale:
            parts = tuple(part._replace(ticks=self.scaled(part.ticks, p.microbatch)) for part in parts)
        return ((Task(p, number), part) for number, part in enumerate(parts))

    def task_text(self, task: Task) -> str:
        """A task by its name, `F0.0/attn`; by its number where it has none."""
        tasks = self.dependencies.tasks.get((task.of.kind, task.of.stage), ())
        name = tasks[task.part].name if task.part < len(tasks) else ""
        of, part = pass_text(self, task.of), name or (str(task.part) if task.part else "")
        return f"{of}/{part}" if part else of

    def device(self, p: Pass) -> int:
        return self.placement.stage_device[p.stage]

    def overlapped_ticks(self, forward: Pass, backward: Pass) -> int | None:
        """Ticks of the two run as one block, or None where this problem gives no such block (they run in turn)."""
        return self.stages[forward.stage].overlapped if (forward.kind, backward.kind) == (F, BW) else None

    def least_work(self, stage: int) -> int:
        """The least compute ticks one micro-batch's passes of this stage take in any schedule, alone in their slots."""
        return self.stages[stage].compute_ticks(F) + self.least_backward(stage)

    def least_backward(self, stage: int) -> int:
        """Of `least_work`, what the backward takes: in one pass or in two."""
        whole = self.stages[stage].compute_ticks(BW)
        return min(whole, self.stages[stage].compute_ticks(B, W)) if self.splittable else whole

    def in_units(self, ticks: int | Fraction) -> float:
        """Ticks as a number of the file's time unit."""
        return float(ticks * self.tick)
